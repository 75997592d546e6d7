"""One native call: how samples are laid out over lanes and threads, within the memory there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qflock.engine.memory import ITEM_BYTES, states_that_fit
from qflock.engine.processor import second_level_cache
from qflock.engine.progress import Progress
from qflock.engine.watch import watch

Lanes = Literal["auto", "batch", "amplitude"]

# Of one amplitude and block, and the least that is worth a thread of its own.
_GRADIENT_SECONDS, _VALUE_SECONDS, _LEAST_SECONDS = 1.2e-9, 0.3e-9, 150e-6


@dataclass(frozen=True, slots=True)
class Settings:
    """How a simulator runs its evaluations.

    Args:
        dtype: Precision of the states, "complex64" or "complex128".
        lanes: What the lanes of a row hold; "auto" takes the faster.
        threads: Threads of one call.
        memory_budget: Bytes for states; None for what the machine has left.
    """

    dtype: str
    lanes: Lanes
    threads: int
    memory_budget: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """Values `(samples, words)`, and the gradient `(expressions,)` or `(samples, expressions)`, float64."""

    values: NDArray[np.float64]
    gradient: NDArray[np.float64] | None


def evaluate(
    module: Any,
    model: Any,
    data: Any,
    entries: NDArray[np.int64] | None,
    samples: int,
    angles: NDArray[np.float64],
    upstream: NDArray[np.float64] | None,
    settings: Settings,
    what: str,
    progress: Progress | None = None,
) -> Result:
    """Evaluates a batch.

    Args:
        module: The native module.
        model: The native model, a program and its observables.
        data: A native table of data circuits.
        entries: The place in `data` of each sample's circuit, or None where all start at |0...0>.
        samples: Size of the batch.
        angles: `(expressions,)` shared by all samples, or `(samples, expressions)`.
        upstream: `(samples, words)` weights of the vector-Jacobian product, or None for values only.
        settings: How to run.
        what: Names the observables in an error about memory.
        progress: Called with the share of the work that is done.

    Raises:
        MemoryBudgetError: If one state does not fit.
    """
    values = np.zeros((samples, model.observable_count))
    gradient = None if upstream is None else np.zeros(angles.shape)
    if samples == 0:
        return Result(values, gradient)
    layout = _layout(module, model, samples, angles.ndim == 2, upstream is not None, settings, what)
    kind = "forward" if upstream is None else "backward"
    with watch.span(kind, qubits=model.bits, batch=samples, threads=layout.threads):
        module.evaluate(
            model,
            data,
            entries,
            np.ascontiguousarray(angles),
            angles.ndim == 2,
            None if upstream is None else np.ascontiguousarray(upstream),
            values,
            gradient,
            settings.dtype == "complex128",
            layout.batch_lanes,
            layout.share_state,
            layout.threads,
            layout.slice_bits,
            progress or watch.share_of(model.bits),
        )
    return Result(values, gradient)


@dataclass(frozen=True, slots=True)
class _Layout:
    batch_lanes: bool
    share_state: bool
    threads: int
    slice_bits: int


def _layout(
    module: Any, model: Any, samples: int, per_sample: bool, gradient: bool, settings: Settings, what: str
) -> _Layout:
    width = 2 * module.vector_bytes // ITEM_BYTES[settings.dtype]
    lane_qubits = width.bit_length() - 1
    # Two slices, of the state and of the co-state, fill the second-level cache: smaller ones are copied more often than
    # they save.
    slice_bits = (second_level_cache() // 2 // (2 * module.vector_bytes)).bit_length() - 1
    bits = model.bits
    threads = _worth_their_waking(settings.threads, samples * model.block_count << bits, gradient)
    if not per_sample and _prefer_batch_lanes(bits, slice_bits, samples, width, threads, settings.lanes):
        group_qubits = bits + lane_qubits
        fit = states_that_fit(
            group_qubits, gradient=gradient, wanted=threads, dtype=settings.dtype,
            budget=settings.memory_budget, what=what,
        )  # fmt: skip
        return _Layout(True, False, min(fit, math.ceil(samples / width)), slice_bits)
    row_bits = bits - lane_qubits
    wide = row_bits >= slice_bits + 3 or (samples < threads and row_bits > slice_bits - 3)
    wanted = 1 if wide else min(threads, samples)
    fit = states_that_fit(
        bits, gradient=gradient, wanted=wanted, dtype=settings.dtype, budget=settings.memory_budget, what=what
    )
    if wide or fit < wanted:
        spread = math.ceil(math.log2(threads)) + 1 if threads > 1 else 0
        return _Layout(False, True, threads, max(4, min(slice_bits, row_bits - spread)))
    return _Layout(False, False, fit, slice_bits)


def _worth_their_waking(threads: int, work: int, gradient: bool) -> int:
    """Threads for some work, in amplitudes times blocks: to wake one that sleeps takes as long as 0.1 ms of work."""
    seconds = work * (_GRADIENT_SECONDS if gradient else _VALUE_SECONDS)
    return max(1, min(threads, int(seconds / _LEAST_SECONDS)))


def _prefer_batch_lanes(
    bits: int, slice_bits: int, samples: int, width: int, threads: int, lanes: Lanes
) -> bool:
    """Batch lanes cost whole groups of samples; amplitude lanes cost more per sample on small states, but stay in the
    cache where `width` states at once do not."""
    if lanes != "auto":
        return lanes == "batch"
    if bits > slice_bits:
        return False
    grouped = math.ceil(math.ceil(samples / width) / threads) * width
    one_by_one = math.ceil(samples / threads) * (1.1 + 4.0 / (1 << max(0, bits - 5)))
    return grouped <= one_by_one
