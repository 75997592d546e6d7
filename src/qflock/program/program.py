"""Programs: circuits on numbered qubits, with numbered angles, as flat immutable data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cirq
import sympy

from qflock.circuits.gates import Fixed, Rotation, lower_circuit
from qflock.errors import CircuitError
from qflock.program.operators import Operator, fixed, rotation


@dataclass(frozen=True, slots=True)
class Gate:
    """One operator at a place.

    Args:
        qubits: Qubit numbers, the first is the most significant bit of the operator's matrix index.
        operator: What is applied.
        expression: Number of the angle, or -1 for a fixed operator.
    """

    qubits: tuple[int, ...]
    operator: Operator
    expression: int = -1


@dataclass(frozen=True, slots=True)
class Program:
    """Gates in the order of their application.

    Args:
        qubit_count: Qubits are numbered from 0.
        gates: First applied first.
        expression_count: Angles that an evaluation must supply.
    """

    qubit_count: int
    gates: tuple[Gate, ...]
    expression_count: int = 0


def lower(
    circuit: cirq.AbstractCircuit, numbers: Mapping[cirq.Qid, int]
) -> tuple[Program, tuple[sympy.Expr, ...]]:
    """Turns a circuit into a program and the expressions of its angles.

    Args:
        circuit: Unitary circuit on qubits, possibly with symbols.
        numbers: The number of each qubit; it may hold qubits that the circuit does not use.

    Returns:
        The program, and the expression of each numbered angle. Equal expressions share a number.

    Raises:
        CircuitError: If an operation is not unitary, or acts on something that is no qubit.
    """
    expressions: dict[sympy.Expr, int] = {}
    gates: list[Gate] = []
    for part in lower_circuit(circuit):
        qubits = _numbered(part.qubits, numbers)
        if isinstance(part, Fixed):
            gates.append(Gate(qubits, _operator_of_fixed(part)))
        else:
            number = expressions.setdefault(part.exponent, len(expressions))
            gates.append(Gate(qubits, _operator_of_rotation(part), number))
    return Program(len(numbers), tuple(gates), len(expressions)), tuple(expressions)


def _numbered(qubits: Sequence[cirq.Qid], numbers: Mapping[cirq.Qid, int]) -> tuple[int, ...]:
    try:
        return tuple([numbers[q] for q in qubits])
    except KeyError as missing:
        raise CircuitError(
            f"Qubit {missing.args[0]!r} is used by a data circuit but is not among the {len(numbers)} qubits that "
            "were numbered; compile the circuit together with all its qubits"
        ) from None


def _operator_of_fixed(part: Fixed) -> Operator:
    return fixed(part.matrix)


def _operator_of_rotation(part: Rotation) -> Operator:
    return rotation(part.half_turns, part.projectors)
