"""Lowering: every Cirq operation becomes fixed unitaries and rotations, first applied first.

One formula therefore gives every gate's derivative: that of a rotation,
`dU/dx = sum_j i pi half_turns[j] exp(i pi half_turns[j] x) projectors[j]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cirq
import numpy as np

from qflock.circuits.controls import MOST_QUBITS, controlled
from qflock.circuits.parts import Fixed, Part, Qubits, Rotation, fixed, spectral, tidy
from qflock.circuits.rows import DENSE_QUBITS, ROWS, SYMBOLIC_ROWS, eigen_spectrum
from qflock.errors import CircuitError

__all__ = ["Fixed", "Part", "Rotation", "lower_circuit", "lower_operation"]

_CACHED_GATES = 1 << 14
_Placed = tuple[tuple[tuple[int, ...], Part], ...]

# By identity, which costs no hashing; the entry keeps the gate alive, so that its identity stays its own.
_gates: dict[int, tuple[cirq.Gate, _Placed]] = {}


def lower_circuit(circuit: cirq.AbstractCircuit) -> list[Fixed | Rotation]:
    """Lowers a circuit.

    Args:
        circuit: Unitary operations on qubits, possibly with symbols.

    Returns:
        Parts, first applied first. A phase of the whole state (a `cirq.GlobalPhaseGate` that nothing controls) is
        dropped.

    Raises:
        CircuitError: If an operation is a measurement, a noise channel, classically controlled, not unitary, on
            something that is no qubit, or too large for one matrix and without a decomposition.

    Example:
        >>> import cirq, sympy
        >>> q = cirq.LineQubit(0)
        >>> hadamard, turn = lower_circuit(cirq.Circuit(cirq.H(q), cirq.rz(sympy.Symbol("a"))(q)))
        >>> turn.half_turns.tolist(), turn.exponent
        ([-0.5, 0.5], a/pi)
    """
    parts: list[Part] = []
    for index, moment in enumerate(circuit):
        try:
            for operation in moment.operations:
                parts.extend(lower_operation(operation))
        except CircuitError as error:
            raise CircuitError(f"{error} (in moment {index} of the circuit)") from None
    return parts


def lower_operation(operation: cirq.Operation) -> Sequence[Fixed | Rotation]:
    """Lowers one operation; see `lower_circuit`.

    Args:
        operation: A unitary operation on qubits, possibly with symbols.

    Returns:
        Parts, first applied first; none for an identity.

    Raises:
        CircuitError: As for `lower_circuit`.

    Example:
        >>> import cirq
        >>> [part] = lower_operation(cirq.CNOT(*cirq.LineQubit.range(2)))
        >>> part.matrix.real.astype(int).tolist()
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    """
    parts = _parts(operation)
    if operation.qubits:
        return parts
    return [part for part in parts if part.qubits]


def _parts(operation: cirq.Operation) -> Sequence[Part]:
    if type(operation) is not cirq.GateOperation:
        operation = operation.untagged
        if isinstance(operation, cirq.CircuitOperation):
            return _joined(_unrolled(operation), operation.qubits)
        if isinstance(operation, cirq.ControlledOperation):
            _check(operation)
            inner = _parts(operation.sub_operation)
            return list(controlled(operation.controls, operation.control_values, inner))
        if isinstance(operation, cirq.ClassicallyControlledOperation):
            raise CircuitError(f"Operation {operation} depends on a measurement; a circuit must be unitary")
    gate = operation.gate
    if gate is None:
        _check(operation)
        return _general(operation)
    qubits = operation.qubits
    return [_moved(part, places, qubits) for places, part in _placed(gate)]


def _moved(part: Part, places: tuple[int, ...], qubits: Qubits) -> Part:
    target = (qubits[places[0]],) if len(places) == 1 else tuple([qubits[p] for p in places])
    if isinstance(part, Fixed):
        return Fixed(target, part.matrix)
    return Rotation(target, part.half_turns, part.projectors, part.exponent)


def _placed(gate: cirq.Gate) -> _Placed:
    """The gate's parts, with the places of their qubits among the gate's."""
    known = _gates.get(id(gate))
    if known is not None:
        return known[1]
    qubits: Qubits = tuple(cirq.LineQid.for_gate(gate))
    placed = tuple((tuple([q.x for q in part.qubits]), part) for part in _parts_of_gate(gate, qubits))
    if type(gate).__hash__ is not None:  # what has no hash may change
        if len(_gates) >= _CACHED_GATES:
            _gates.clear()
        _gates[id(gate)] = (gate, placed)
    return placed


def _parts_of_gate(gate: cirq.Gate, qubits: Qubits) -> Sequence[Part]:
    row = ROWS.get(type(gate))
    if row is None and cirq.is_parameterized(gate):
        row = SYMBOLIC_ROWS.get(type(gate))
    operation = gate.on(*qubits)
    _check(operation)
    ...
