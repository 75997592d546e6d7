"""Memory is planned before it is used."""

from __future__ import annotations

from qflock.engine.processor import available_memory
from qflock.errors import MemoryBudgetError

ITEM_BYTES = {"complex64": 8, "complex128": 16}

# Asking the system what it has left takes longer than to evaluate a small state.
_ALWAYS_FITS = 1 << 26
_PREFIX_SHARE = 8


def estimate_memory(
    qubit_count: int, *, gradient: bool = True, states: int = 1, dtype: str = "complex64"
) -> int:
    """Bytes that evaluating full states takes.

    A value needs one state, a gradient two (the state and the co-state), each of `2**qubit_count` amplitudes.

    Args:
        qubit_count: Qubits of one state.
        gradient: Whether a gradient is wanted too.
        states: How many samples are evaluated at the same moment.
        dtype: "complex64" or "complex128".

    Returns:
        The size in bytes, without a few megabytes for slices and matrices.

    Example:
        >>> estimate_memory(29) / 2**30
        8.0
    """
    return (1 << qubit_count) * ITEM_BYTES[dtype] * (2 if gradient else 1) * states


def states_that_fit(
    qubit_count: int, *, gradient: bool, wanted: int, dtype: str, budget: int | None, what: str
) -> int:
    """How many samples can be evaluated at the same moment, at most `wanted`.

    Args:
        qubit_count: Qubits of one state.
        gradient: Whether a gradient is wanted too.
        wanted: More than this is never needed.
        dtype: "complex64" or "complex128".
        budget: Bytes that may be used; None for what the machine has left.
        what: Names the culprit in the error, for instance "observable 3".

    Raises:
        MemoryBudgetError: If not even one fits.
    """
    all_of_them = estimate_memory(qubit_count, gradient=gradient, states=wanted, dtype=dtype)
    if budget is None and all_of_them <= _ALWAYS_FITS:
        return wanted
    limit = available_memory() if budget is None else budget
    if wanted > 1 and all_of_them <= limit // 2:
        return wanted
    one = estimate_memory(qubit_count, gradient=gradient, dtype=dtype)
    if one > limit:
        have = "the memory budget is" if budget is not None else "this machine has"
        raise MemoryBudgetError(
            f"{what[:1].upper()}{what[1:]} needs {readable(one)} for a state of {qubit_count} qubits in {dtype}"
            f"{' and its gradient' if gradient else ''}, but {have} {readable(limit)}; "
            f"{_way_out(budget, one)}"
        )
    return max(1, min(wanted, limit // 2 // one))


def prefix_budget(budget: int | None) -> int:
    """Bytes that one simulator may take to keep the states of data circuits: a small share of what there is.

    Args:
        budget: Bytes that all states may take; None for what the machine has left.
    """
    return (available_memory() if budget is None else budget) // _PREFIX_SHARE


def _way_out(budget: int | None, one: int) -> str:
    if budget is not None:
        return f"the smallest budget that works is {one} bytes"
    return "use fewer qubits, an observable with a smaller cone, or a machine with more memory"


def readable(size: int) -> str:
    """A size for people, in binary units.

    Example:
        >>> readable(3 << 30)
        '3.0 GiB'
    """
    if size >> 70:
        return f"2^{size.bit_length() - 1} B"
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024 or unit == "PiB":
            break
        value /= 1024
    return f"{value:.1f} {unit}" if value < 1e6 else f"{value:.1e} {unit}"
