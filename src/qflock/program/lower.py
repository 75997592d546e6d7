"""Lowering: a Cirq circuit becomes a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cirq
import sympy

from qflock.circuits.gates import Fixed, lower_circuit
from qflock.errors import CircuitError
from qflock.program.operators import fixed, rotation
from qflock.program.program import Gate, Program


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
            gates.append(Gate(qubits, fixed(part.matrix)))
        else:
            number = expressions.setdefault(part.exponent, len(expressions))
            gates.append(Gate(qubits, rotation(part.half_turns, part.projectors), number))
    return Program(len(numbers), tuple(gates), len(expressions)), tuple(expressions)


def _numbered(qubits: Sequence[cirq.Qid], numbers: Mapping[cirq.Qid, int]) -> tuple[int, ...]:
    try:
        return tuple([numbers[q] for q in qubits])
    except KeyError as missing:
        raise CircuitError(
            f"Qubit {missing.args[0]!r} is used by a data circuit but is not among the {len(numbers)} qubits that "
            "were numbered; compile the circuit together with all its qubits"
        ) from None
