"""Lowering: every Cirq operation becomes fixed unitaries and rotations, first applied first.

One formula therefore gives every gate's derivative: that of a rotation,
`dU/dx = sum_j i pi half_turns[j] exp(i pi half_turns[j] x) projectors[j]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import cirq
import numpy as np
from numpy.typing import NDArray

from qflock.circuits.controls import MOST_QUBITS, controlled
from qflock.circuits.parts import Fixed, Part, Qubits, Rotation, fixed, tidy
from qflock.circuits.rows import DENSE_QUBITS, row_of
from qflock.errors import CircuitError

__all__ = ["Fixed", "Part", "Rotation", "lower_circuit", "lower_operation"]

_Placed: TypeAlias = tuple[tuple[tuple[int, ...], Part], ...]

_CACHED = 1 << 14
# By identity, which costs no hashing; an entry keeps its object alive, so that the identity stays its own.
_gates: dict[int, tuple[cirq.Gate, _Placed]] = {}
_operations: dict[int, tuple[cirq.Operation, Sequence[Part]]] = {}


def lower_circuit(circuit: cirq.AbstractCircuit) -> list[Fixed | Rotation]:
    """Lowers a circuit.

    Args:
        circuit: Unitary operations on qubits, possibly with symbols.

    Returns:
        Parts, first applied first. A phase of the whole state (a `cirq.GlobalPhaseGate` without controls) is
        dropped.

    Raises:
        CircuitError: If an operation is a measurement, a noise channel, classically controlled, not unitary,
            on something that is no qubit, or too large for one matrix and without a decomposition.

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
        row = _OPERATION_ROWS.get(type(operation))
        if row is not None:
            return _remembered(operation, row)
    gate = operation.gate
    if gate is None:
        return _remembered(operation, _general)
    qubits = operation.qubits
    return [_moved(part, places, qubits) for places, part in _placed(gate)]


def _remembered(operation: cirq.Operation, row: Callable[[Any], Sequence[Part]]) -> Sequence[Part]:
    known = _operations.get(id(operation))
    if known is not None:
        return known[1]
    _check_qubits(operation, cirq.qid_shape(operation))
    parts = tuple(row(operation))
    if _never_changes(operation):
        _make_room(_operations)
        _operations[id(operation)] = (operation, parts)
    return parts


def _never_changes(operation: cirq.Operation) -> bool:
    """A gate that cannot be hashed may change."""
    while isinstance(operation, (cirq.ControlledOperation, cirq.TaggedOperation)):
        operation = operation.sub_operation
    return type(operation.gate).__hash__ is not None


def _make_room(cache: dict[int, Any]) -> None:
    if len(cache) >= _CACHED:
        cache.clear()


def _controlled(operation: cirq.ControlledOperation) -> Sequence[Part]:
    inner = _parts(operation.sub_operation)
    return list(controlled(operation.controls, operation.control_values, inner))


def _unrolled(operation: cirq.CircuitOperation) -> Sequence[Part]:
    if operation.repeat_until is not None or not isinstance(operation.repetitions, (int, np.integer)):
        until = "" if operation.repeat_until is None else f" until {operation.repeat_until}"
        raise CircuitError(
            "A circuit operation must repeat a fixed number of times, but one repeats "
            f"{operation.repetitions} times{until}"
        )
    return _joined(operation.mapped_circuit().all_operations(), operation.qubits)


def _refused(operation: cirq.ClassicallyControlledOperation) -> Sequence[Part]:
    raise CircuitError(f"Operation {operation} depends on a measurement; remove it, or its condition")


_OPERATION_ROWS: dict[type[cirq.Operation], Callable[[Any], Sequence[Part]]] = {
    cirq.TaggedOperation: lambda operation: _parts(operation.untagged),
    cirq.ControlledOperation: _controlled,
    cirq.CircuitOperation: _unrolled,
    cirq.ClassicallyControlledOperation: _refused,
}


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
    _check_qubits(gate, cirq.qid_shape(gate))
    qubits: Qubits = tuple(cirq.LineQubit.range(cirq.num_qubits(gate)))
    place = {q: k for k, q in enumerate(qubits)}
    placed = tuple((tuple([place[q] for q in part.qubits]), part) for part in _parts_of_gate(gate, qubits))
    if type(gate).__hash__ is not None:  # else it may change
        _make_room(_gates)
        _gates[id(gate)] = (gate, placed)
    return placed


def _parts_of_gate(gate: cirq.Gate, qubits: Qubits) -> Sequence[Part]:
    items = row_of(gate)(gate, qubits)
    if items is not None:
        return _joined(items, qubits)
    operation = gate.on(*qubits)
    return _parts(operation) if isinstance(operation, cirq.ControlledOperation) else _general(operation)


def _joined(items: Iterable[Part | cirq.Operation], qubits: Qubits) -> list[Part]:
    """Lowers operations; a phase becomes a gate on the first qubit, so that everything acts on qubits."""
    parts: list[Part] = []
    for item in items:
        parts.extend(_parts(item) if isinstance(item, cirq.Operation) else (item,))
    return [part if part.qubits or not qubits else _widened(part, qubits[:1]) for part in parts]


def _widened(part: Part, qubits: Qubits) -> Part:
    identity = np.eye(2 ** len(qubits))
    if isinstance(part, Fixed):
        return fixed(qubits, part.matrix * identity)
    return Rotation(qubits, part.half_turns, part.projectors * identity, part.exponent)


def _general(operation: cirq.Operation) -> Sequence[Part]:
    """Operations without a row: by their unitary if they are small, else by their decomposition."""
    _check_unitary(operation)
    qubits = operation.qubits
    has_symbols = bool(cirq.parameter_names(operation))
    if len(qubits) <= DENSE_QUBITS and not has_symbols:
        matrix = _unitary(operation)
        if matrix is not None:
            return [fixed(qubits, matrix)]
    pieces = cirq.decompose_once(operation, None)
    if pieces is not None and all(set(piece.qubits) <= set(qubits) for piece in pieces):
        return _joined(pieces, qubits)
    if len(qubits) <= MOST_QUBITS and not has_symbols:
        matrix = _unitary(operation)
        if matrix is not None:
            return [fixed(qubits, matrix)]
    advice = "give its gate a `_decompose_` method that needs no further qubits"
    if has_symbols:
        names = ", ".join(sorted(cirq.parameter_names(operation)))
        raise CircuitError(
            f"Operation {operation} has symbols ({names}) but no known decomposition; {advice}"
        )
    raise CircuitError(
        f"Operation {operation} acts on {len(qubits)} qubits and has no known decomposition, but one matrix "
        f"may act on at most {MOST_QUBITS}; {advice}"
    )


def _unitary(operation: cirq.Operation) -> NDArray[np.complex128] | None:
    if cirq.is_parameterized(operation):  # constants such as sympy.pi count as parameters in Cirq
        operation = cirq.resolve_parameters(operation, {"": 0.0})
    matrix = cirq.unitary(operation, None)
    if matrix is None:
        return None
    if not cirq.is_unitary(matrix, atol=1e-6):
        raise CircuitError(f"The matrix of operation {operation} is not unitary, or holds NaN")
    return tidy(matrix)


def _check_qubits(culprit: cirq.Operation | cirq.Gate, shape: tuple[int, ...]) -> None:
    for dimension in shape:
        if dimension != 2:
            raise CircuitError(
                f"{culprit!r} acts on a qudit of dimension {dimension}; only qubits are supported"
            )


def _check_unitary(operation: cirq.Operation) -> None:
    if cirq.is_measurement(operation):
        raise CircuitError(
            f"Operation {operation} is a measurement; remove it: observables are given apart from the circuit"
        )
    if cirq.has_unitary(operation) or cirq.is_parameterized(operation):
        return
    if cirq.has_kraus(operation):
        raise CircuitError(f"Operation {operation} is a noise channel or a reset; a circuit must be unitary")
    raise CircuitError(
        f"Operation {operation} has neither a unitary nor a decomposition into gates that have one"
    )
