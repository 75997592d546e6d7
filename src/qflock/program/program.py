"""Programs: circuits on numbered qubits, with numbered angles, as flat immutable data."""

from __future__ import annotations

from dataclasses import dataclass

from qflock.program.operators import Operator


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
