"""Canonical numbering: equal programs get equal keys, wherever in the circuit they come from.

Qubits are renumbered in the order in which a walk back from the observable meets them. The walk picks, among the
gates that nothing later holds back, the one whose known qubits come first; no two such gates share a qubit, so that
the choice is unique and depends on the program's shape alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qflock.program.program import Gate


@dataclass(frozen=True, slots=True)
class Canonical:
    """A program in canonical numbering.

    Args:
        qubits: The original number of each qubit, by its canonical number.
        gates: Renumbered, first applied first.
        key: Hashable; equal for programs that are equal up to the names of qubits.
    """

    qubits: tuple[int, ...]
    gates: tuple[Gate, ...]
    key: tuple[tuple[int, ...], ...]


def canonical(gates: Sequence[Gate], roots: Iterable[int]) -> Canonical:
    """Renumbers the qubits of a cone.

    Args:
        gates: The cone's gates, first applied first.
        roots: The observable's qubits in an order that does not depend on their numbers.
    """
    number: dict[int, int] = {}
    on: dict[int, list[int]] = {}  # gates on each qubit that are still to be walked, last one at the end
    for k, gate in enumerate(gates):
        for q in gate.qubits:
            on.setdefault(q, []).append(k)
    ready: list[tuple[int, int]] = []
    waiting: dict[int, int] = {}  # how many qubits still hold a gate back

    def offer(q: int) -> None:
        """The last gate left on a qubit is one step nearer to being ready."""
        stack = on.get(q)
        if not stack:
            return
        k = stack[-1]
        waiting[k] = waiting.get(k, len(gates[k].qubits)) - 1
        if waiting[k] == 0:
            known = [number[p] for p in gates[k].qubits if p in number]
            heapq.heappush(ready, (min(known), k))

    def meet(q: int) -> None:
        if q not in number:
            number[q] = len(number)

    for q in roots:
        meet(q)
    # A qubit that no root meets yet frees its gates too: whether a gate is last on it does not depend on numbers.
    pending = [q for q in on if q not in number]
    for q in number:
        offer(q)
    for q in pending:
        stack = on[q]
        k = stack[-1]
        waiting[k] = waiting.get(k, len(gates[k].qubits)) - 1
        if waiting[k] == 0 and any(p in number for p in gates[k].qubits):
            heapq.heappush(ready, (min(number[p] for p in gates[k].qubits if p in number), k))
    walked: list[Gate] = []
    key: list[tuple[int, ...]] = []
    while ready:
        _, k = heapq.heappop(ready)
        gate = gates[k]
        for q in gate.qubits:
            meet(q)
        qubits = tuple([number[q] for q in gate.qubits])
        walked.append(Gate(qubits, gate.operator, gate.expression))
        key.append((*qubits, gate.operator.number, gate.expression))
        for q in gate.qubits:
            on[q].pop()
        for q in gate.qubits:
            offer(q)
    return Canonical(tuple(number), tuple(reversed(walked)), tuple(key))
