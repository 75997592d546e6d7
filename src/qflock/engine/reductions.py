"""Exact reductions, and the parts that a circuit falls into under them.

None of these approximates: every value and gradient is that of the whole circuit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qflock.engine.compiled import PauliWord
from qflock.program.canonical import Canonical, canonical
from qflock.program.cone import Cone, GateOrder, Support, pauli_support
from qflock.program.program import Gate, Program


@dataclass(frozen=True, slots=True)
class Reductions:
    """Which exact reductions are used; all are on by default.

    Args:
        cone: Leave out gates and qubits that cannot change an observable.
        split: Evaluate observables with different cones separately where that is cheaper. Needs `cone`.
        dedupe: Evaluate equal (program, data circuit) pairs once.
        prefix: Keep the states that data circuits prepare, which no parameter touches, from call to call.

    Example:
        >>> Reductions(dedupe=False)
        Reductions(cone=True, split=True, dedupe=False, prefix=True)
    """

    cone: bool = True
    split: bool = True
    dedupe: bool = True
    prefix: bool = True

    @classmethod
    def none(cls) -> Reductions:
        """The general path: the whole circuit, for every sample."""
        return cls(cone=False, split=False, dedupe=False, prefix=False)


@dataclass(frozen=True, slots=True)
class Part:
    """Some Pauli words and the part of the model circuit that they need.

    Args:
        words: Positions of the words in the list that was split.
        model: The model's cone in canonical numbering.
        local_words: The same words in that numbering.
        support: The words' joint support before the model's first gate, by canonical number.
    """

    words: tuple[int, ...]
    model: Canonical
    local_words: tuple[PauliWord, ...]
    support: Support

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for parts that differ only in the names of their qubits."""
        return (len(self.model.qubits), self.model.key, self.local_words, tuple(self.support.items()))


def parts_of(
    program: Program, words: Sequence[PauliWord], reductions: Reductions, data: GateOrder | None = None
) -> tuple[Part, ...]:
    """Splits Pauli words and the model program they are measured on.

    Args:
        program: The model circuit.
        words: Pauli words on the program's qubit numbers.
        reductions: What may be used.
        data: A data circuit like those that will come before the model; its gates widen the cones.

    Returns:
        Parts that together hold every word once.
    """
    if not reductions.cone:
        qubits = range(program.qubit_count)
        whole = Canonical(tuple(qubits), program.gates, ())
        return (Part(tuple(range(len(words))), whole, tuple(words), dict.fromkeys(qubits, True)),)
    order = GateOrder(program.gates)
    groups = [_group(order, (k,), support, data) for k, support in enumerate(map(pauli_support, words))]
    groups = _merge_cheaper(order, groups, data) if reductions.split else [_join(order, groups, data)]
    return tuple(_part(group, words) for group in groups)


@dataclass(frozen=True, slots=True)
class _Group:
    words: tuple[int, ...]
    cone: Cone
    support: Support
    cost: int


def _group(order: GateOrder, words: tuple[int, ...], support: Support, data: GateOrder | None) -> _Group:
    """With the cost as amplitudes times gates, and a floor for what any evaluation costs."""
    cone = order.cone(support)
    qubits = len(cone.support if data is None else data.cone(cone.support).support)
    return _Group(words, cone, support, (1 << max(6, qubits)) * (4 + len(cone.gates)))


def _join(order: GateOrder, groups: Sequence[_Group], data: GateOrder | None) -> _Group:
    support: Support = {}
    for group in groups:
        for q, general in group.support.items():
            support[q] = support.get(q, False) or general
    return _group(order, tuple(w for g in groups for w in g.words), support, data)


def _merge_cheaper(order: GateOrder, groups: Sequence[_Group], data: GateOrder | None) -> list[_Group]:
    """Puts each word into the first group with which it is no dearer than alone."""
    merged: list[_Group] = []
    at: dict[int, set[int]] = {}  # qubit -> groups whose cone holds it
    for group in groups:
        near = sorted(set().union(*(at.get(q, set()) for q in group.cone.support)))
        home = len(merged)
        for k in near:
            joint = _join(order, (merged[k], group), data)
            if joint.cost <= merged[k].cost + group.cost:
                home, group = k, joint
                break
        if home == len(merged):
            merged.append(group)
        else:
            merged[home] = group
        for q in group.cone.support:
            at.setdefault(q, set()).add(home)
    return merged


def _part(group: _Group, words: Sequence[PauliWord]) -> Part:
    roots: dict[int, None] = {}
    for k in group.words:
        for q, _ in words[k]:
            roots[q] = None
    model = canonical(group.cone.gates, roots)
    number = {q: k for k, q in enumerate(model.qubits)}
    local = tuple(tuple((number[q], pauli) for q, pauli in words[k]) for k in group.words)
    support = {number[q]: general for q, general in group.cone.support.items()}
    return Part(group.words, model, local, dict(sorted(support.items())))


def data_cone(part: Part, order: GateOrder, qubit_count: int, reductions: Reductions) -> Canonical:
    """The part of a data circuit that a part's words need, numbered after the part's own qubits.

    Args:
        part: The part of the model.
        order: The data circuit's gates.
        qubit_count: Qubits of the whole circuit.
        reductions: What may be used.
    """
    if not reductions.cone:
        gates = order.gates
        return Canonical(tuple(range(qubit_count)), gates, gate_key(gates))
    support = {part.model.qubits[k]: general for k, general in part.support.items()}
    return canonical(order.cone(support).gates, part.model.qubits)


def gate_key(gates: Sequence[Gate]) -> tuple[tuple[int, ...], ...]:
    """Hashable; equal for equal gates on equal qubit numbers."""
    return tuple([(*g.qubits, g.operator.number, g.expression) for g in gates])
