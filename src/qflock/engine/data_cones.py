"""The cones of data circuits: circuits of one shape share the search for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qflock.engine.reductions import Part, Reductions, data_cone
from qflock.program.canonical import Canonical
from qflock.program.cone import GateOrder
from qflock.program.program import Gate, Program

_SHAPES = 4096
_Shape = tuple[int, tuple[tuple[tuple[int, ...], tuple[bool, ...]], ...]]


class DataCones:
    """What each part of a model needs of a data circuit.

    Which gates these are, and how their qubits are numbered, depends on where the gates act and on which qubits they
    are diagonal, not on their angles. Data sets hold many circuits of few such shapes.

    Args:
        parts: The parts of the model.
        reductions: What may be used.
    """

    def __init__(self, parts: Sequence[Part], reductions: Reductions) -> None:
        self._parts = parts
        self._reductions = reductions
        self._known: dict[_Shape, list[Canonical]] = {}

    def of(self, data: Program) -> list[Canonical]:
        """For each part, its cone of a data circuit without symbols."""
        shape = (data.qubit_count, tuple([(g.qubits, g.operator.diagonal) for g in data.gates]))
        cones = self._known.get(shape)
        if cones is None:
            if len(self._known) >= _SHAPES:
                self._known.clear()
            cones = self._known[shape] = self._search(data)
        return [_filled(cone, data.gates) for cone in cones]

    def _search(self, data: Program) -> list[Canonical]:
        # A gate without an angle has no use for its expression's number: here it holds the gate's position.
        order = GateOrder([replace(gate, expression=k) for k, gate in enumerate(data.gates)])
        return [data_cone(part, order, data.qubit_count, self._reductions) for part in self._parts]


def _filled(cone: Canonical, gates: Sequence[Gate]) -> Canonical:
    """A cone of positions, filled with the gates at these positions."""
    filled = tuple([Gate(place.qubits, gates[place.expression].operator) for place in cone.gates])
    return Canonical(cone.qubits, filled, tuple([(*g.qubits, g.operator.number) for g in filled]))
