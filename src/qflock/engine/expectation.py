"""Expectation values for people: one call, values by symbol name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, overload

import cirq
import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from qflock.circuits.symbols import bind_values
from qflock.engine.progress import progress_bar, section
from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator

Floats = NDArray[np.float64]
Values = Mapping[str, ArrayLike] | Mapping[sympy.Symbol, ArrayLike] | cirq.ParamResolver


@overload
def expectation(
    circuit: cirq.AbstractCircuit,
    observables: object,
    values: Values | None = None,
    *,
    gradient: Literal[False] = False,
    dtype: str = "complex64",
    reductions: Reductions | None = None,
    memory_budget: int | None = None,
    progress: bool | None = None,
) -> Floats: ...


@overload
def expectation(
    circuit: cirq.AbstractCircuit,
    observables: object,
    values: Values | None = None,
    *,
    gradient: Literal[True],
    dtype: str = "complex64",
    reductions: Reductions | None = None,
    memory_budget: int | None = None,
    progress: bool | None = None,
) -> tuple[Floats, dict[str, Floats]]: ...


def expectation(
    circuit: cirq.AbstractCircuit,
    observables: object,
    values: Values | None = None,
    *,
    gradient: bool = False,
    dtype: str = "complex64",
    reductions: Reductions | None = None,
    memory_budget: int | None = None,
    progress: bool | None = None,
) -> Floats | tuple[Floats, dict[str, Floats]]:
    r"""Exact expectation values of a circuit, and their derivatives by its symbols.

    $E_k(\theta) = \langle 0|U^\dagger(\theta)\, O_k\, U(\theta)|0\rangle$ and $\partial E_k / \partial \theta_j$, by
    block adjoint differentiation.

    Args:
        circuit: A unitary `cirq.Circuit`, with or without symbols.
        observables: A Hermitian `cirq.PauliString` or `cirq.PauliSum`, or a list of them.
        values: The value of each symbol, by name: a number, or an array `(batch,)`; arrays have one length. Units are
            those of the circuit, radians for `cirq.rx`.
        gradient: Return the derivatives too.
        dtype: Precision of the states, "complex64" or "complex128".
        reductions: Which exact reductions to use; all by default.
        memory_budget: Bytes that states may take; by default what the machine has left.
        progress: Whether to show a bar once two seconds have passed; by default where the standard error stream is a
            terminal.

    Returns:
        Values `(observables,)`, or `(batch, observables)` when any value is an array, float64. With `gradient`, also
        a dictionary that maps each symbol to derivatives of the same shape.

    Raises:
        SymbolError: If a symbol has no value, a value no symbol, or a value is not finite.
        CircuitError: If the circuit is not unitary or not on qubits.
        ObservableError: If an observable is not Hermitian, or there is none.
        MemoryBudgetError: If the state does not fit.

    Example:
        >>> import cirq, sympy
        >>> q = cirq.LineQubit(0)
        >>> circuit = cirq.Circuit(cirq.ry(sympy.Symbol("theta"))(q))
        >>> values, jacobian = expectation(circuit, cirq.X(q), {"theta": [0.0, 0.5]}, gradient=True)
        >>> values.round(6).tolist(), jacobian["theta"].round(6).tolist()
        ([[0.0], [0.479426]], [[1.0], [0.877583]])
    """
    simulator = Simulator(
        circuit, observables, dtype=dtype, reductions=reductions, memory_budget=memory_budget
    )
    parameters = bind_values(simulator.symbols, {} if values is None else values)
    batched = parameters.ndim == 2
    with progress_bar(progress, f"{simulator.qubit_count} qubits") as report:
        if not gradient:
            result = simulator.expectations(parameters, progress=report)
            return result if batched else result[0]
        rows = np.atleast_2d(parameters)
        count = simulator.observable_count
        result = np.zeros((len(rows), count))
        jacobian = np.zeros((len(rows), count, simulator.parameter_count))
        for k in range(count):
            upstream = np.zeros(result.shape)
            upstream[:, k] = 1.0
            part = section(report, k / count, (k + 1) / count)
            result, jacobian[:, k, :] = simulator.vjp(rows, upstream, progress=part)
    if not batched:
        result, jacobian = result[0], jacobian[0]
    return result, {name: jacobian[..., j] for j, name in enumerate(simulator.symbols)}
