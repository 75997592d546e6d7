"""Shapes: circuits without the numbers that change from one circuit of a data set to the next."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import cirq

from qflock.circuits.templates import Make, maker, split
from qflock.circuits.trees import cirq_text, cirq_value, read_tags, tags_text
from qflock.errors import TensorFormatError

Numbers: TypeAlias = tuple[float, ...]


def shape_of(circuit: cirq.AbstractCircuit) -> tuple[dict[str, Any], list[float]]:
    """A circuit's shape as JSON content, and its numbers.

    Raises:
        TensorFormatError: If an operation or qubit has no serialised form.
    """
    numbers: list[float] = []
    qubits: dict[cirq.Qid, int] = {}
    templates: dict[str, int] = {}
    moments = []
    for index, moment in enumerate(circuit):
        row: list[int] = []
        for operation in moment.operations:
            before = len(numbers)
            try:
                body, places = split(operation, numbers)
            except TensorFormatError as error:
                raise TensorFormatError(f"{error} (in moment {index} of the circuit)") from None
            text = json.dumps([len(places), len(numbers) - before, body], separators=(",", ":"))
            row.append(templates.setdefault(text, len(templates)))
            row.extend([qubits.setdefault(q, len(qubits)) for q in places])
        moments.append(row)
    content: dict[str, Any] = {
        "qubits": [qubit_content(q) for q in qubits],
        "templates": [json.loads(text) for text in templates],
        "moments": moments,
    }
    tags = {k: tags_text(moment.tags) for k, moment in enumerate(circuit) if moment.tags}
    if tags:
        content["tags"] = tags
    return content, numbers


def qubit_content(qubit: cirq.Qid) -> Any:
    """A qubit as JSON: the common kinds in short."""
    if type(qubit) is cirq.LineQubit:
        return qubit.x
    if type(qubit) is cirq.GridQubit:
        return [qubit.row, qubit.col]
    if type(qubit) is cirq.NamedQubit:
        return qubit.name
    return {"cirq": cirq_text(qubit)}


def read_qubit(content: Any) -> cirq.Qid:
    """The qubit of JSON content."""
    if isinstance(content, int):
        return cirq.LineQubit(content)
    if isinstance(content, str):
        return cirq.NamedQubit(content)
    if isinstance(content, list):
        return cirq.GridQubit(*content)
    qubit: cirq.Qid = cirq_value(content["cirq"])
    return qubit


@dataclass(frozen=True, slots=True)
class _Place:
    """An operation of a shape: how it is made, which numbers it takes, where it acts."""

    make: Make
    numbers: slice
    qubits: tuple[cirq.Qid, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A moment of a shape, and which numbers all its operations together take."""

    places: tuple[_Place, ...]
    numbers: slice
    tags: tuple[Any, ...]

    def filled(self, numbers: Numbers) -> cirq.Moment:
        """The moment with these numbers."""
        operations = [place.make(numbers[place.numbers], place.qubits) for place in self.places]
        return cirq.Moment.from_ops(*operations, tags=self.tags)

    def renewed(self, numbers: Numbers, old: cirq.Moment, old_numbers: Numbers) -> cirq.Moment:
        """The same, taking over what did not change."""
        if numbers[self.numbers] == old_numbers[self.numbers]:
            return old
        operations = [
            before
            if numbers[place.numbers] == old_numbers[place.numbers]
            else place.make(numbers[place.numbers], place.qubits)
            for place, before in zip(self.places, old.operations, strict=True)
        ]
        return cirq.Moment.from_ops(*operations, tags=self.tags)


class Shape:
    """A circuit without its numbers; it remembers what it last became, as the next differs in few places."""

    def __init__(self, rows: tuple[_Row, ...]) -> None:
        self._rows = rows
        self._latest: tuple[Numbers, list[cirq.Moment]] | None = None

    def filled(self, numbers: Numbers) -> cirq.Circuit:
        """The circuit with these numbers."""
        if self._latest is None:
            moments = [row.filled(numbers) for row in self._rows]
        else:
            old_numbers, old = self._latest
            moments = [
                row.renewed(numbers, before, old_numbers) for row, before in zip(self._rows, old, strict=True)
            ]
        self._latest = (numbers, moments)
        return cirq.Circuit.from_moments(*moments)


def read_shape(content: dict[str, Any]) -> Shape:
    """The shape of JSON content."""
    qubits = [read_qubit(item) for item in content["qubits"]]
    templates = [(arity, slots, maker(body)) for arity, slots, body in content["templates"]]
    tags = {int(k): read_tags(text) for k, text in content.get("tags", {}).items()}
    used = 0
    rows = []
    for index, flat in enumerate(content["moments"]):
        places, first, at = [], used, 0
        while at < len(flat):
            arity, slots, make = templates[flat[at]]
            where = tuple([qubits[k] for k in flat[at + 1 : at + 1 + arity]])
            places.append(_Place(make, slice(used, used + slots), where))
            used, at = used + slots, at + 1 + arity
        rows.append(_Row(tuple(places), slice(first, used), tags.get(index, ())))
    return Shape(tuple(rows))
