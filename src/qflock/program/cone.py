"""The cone of an observable: the gates that can change its expectation value.

Walking back from the observable, each qubit of its support is either *diagonal* (the observable, pulled back so far,
commutes with Z on it) or *general*. A gate that is diagonal on every qubit it shares with the support, while the
support is diagonal there, commutes with the observable and cancels against its own inverse: it drops out. A gate
that stays makes its qubits general, except those where it is diagonal itself and the support was not general.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qflock.program.program import Gate

Support = dict[int, bool]
"""Qubit number -> is the observable general (not diagonal) on it."""


@dataclass(frozen=True, slots=True)
class Cone:
    """The gates that matter, first applied first, and the support of the observable before all of them."""

    gates: tuple[Gate, ...]
    support: Mapping[int, bool]


class GateOrder:
    """Gates in order, each linked to the one before it on each of its qubits.

    The links let a small cone in a wide circuit be found without looking at the rest of the circuit.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self.gates = tuple(gates)
        self._last: dict[int, int] = {}
        self._before: list[tuple[int, ...]] = []
        for k, gate in enumerate(gates):
            self._before.append(tuple([self._last.get(q, -1) for q in gate.qubits]))
            for q in gate.qubits:
                self._last[q] = k

    def cone(self, support: Mapping[int, bool]) -> Cone:
        """The cone of an observable with a given support after the last gate."""
        now: Support = dict(support)
        seen = {self._last[q] for q in now if q in self._last}
        latest_first = [-k for k in seen]
        heapq.heapify(latest_first)
        kept: list[Gate] = []
        while latest_first:
            k = -heapq.heappop(latest_first)
            gate = self.gates[k]
            if not _commutes(gate, now):
                kept.append(gate)
                for q, diagonal in zip(gate.qubits, gate.operator.diagonal, strict=True):
                    now[q] = now.get(q, False) or not diagonal
            for q, before in zip(gate.qubits, self._before[k], strict=True):
                if before >= 0 and q in now and before not in seen:
                    seen.add(before)
                    heapq.heappush(latest_first, -before)
        return Cone(tuple(reversed(kept)), now)


def _commutes(gate: Gate, support: Mapping[int, bool]) -> bool:
    for q, diagonal in zip(gate.qubits, gate.operator.diagonal, strict=True):
        general = support.get(q)
        if general is not None and (general or not diagonal):
            return False
    return True


def pauli_support(paulis: Iterable[tuple[int, str]]) -> Support:
    """The support of a Pauli string: diagonal on its Zs, general on its Xs and Ys."""
    return {q: pauli != "Z" for q, pauli in paulis}
