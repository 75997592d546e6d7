"""Observables: Hermitian sums of Pauli strings in one form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import cirq

from qflock.errors import ObservableError

_IMAGINARY_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class PauliTerm:
    """A real coefficient times a Pauli string of ("X" | "Y" | "Z") by qubit, never empty."""

    coefficient: float
    paulis: tuple[tuple[cirq.Qid, str], ...]


@dataclass(frozen=True, slots=True)
class Observable:
    """A constant plus Pauli terms."""

    constant: float
    terms: tuple[PauliTerm, ...]


def normalise(observables: object) -> tuple[Observable, ...]:
    """Checks observables and brings them into one form.

    Args:
        observables: A Hermitian `cirq.PauliString` or `cirq.PauliSum`, or a list of them.

    Raises:
        ObservableError: If the list is empty, or an item is no Pauli sum, has a coefficient that is not real, or acts on
            something that is no qubit. Names the item's position.

    Example:
        >>> q = cirq.LineQubit(0)
        >>> normalise(2.0 * cirq.Z(q) + 1.0)[0].constant
        1.0
    """
    items = list(_items(observables))
    if not items:
        raise ObservableError("Observables must be one or more Pauli strings or sums, but the list is empty")
    return tuple(_observable(item, k) for k, item in enumerate(items))


def _items(observables: object) -> Iterator[Any]:
    if isinstance(observables, (cirq.PauliString, cirq.PauliSum)) or not isinstance(observables, Iterable):
        yield observables
    else:
        yield from observables


def _observable(item: Any, position: int) -> Observable:
    constant = 0.0
    terms: list[PauliTerm] = []
    for string in _strings(item, position):
        if abs(string.coefficient.imag) > _IMAGINARY_TOLERANCE * max(1.0, abs(string.coefficient)):
            raise ObservableError(
                f"Observable {position} must be Hermitian, but the coefficient of {string} is {string.coefficient}, "
                "which is not real"
            )
        coefficient = float(string.coefficient.real)
        paulis = tuple((q, str(pauli)) for q, pauli in sorted(string.items()))
        if any(q.dimension != 2 for q, _ in paulis):
            raise ObservableError(f"Observable {position} must act on qubits, but {string} acts on a qudit")
        if paulis:
            terms.append(PauliTerm(coefficient, paulis))
        else:
            constant += coefficient
    return Observable(constant, tuple(terms))


def _strings(item: Any, position: int) -> list[cirq.PauliString]:
    if isinstance(item, cirq.PauliSum):
        return list(item)
    if isinstance(item, cirq.GateOperation) and not isinstance(item, cirq.PauliString):
        if item.gate in (cirq.X, cirq.Y, cirq.Z):
            return [cirq.PauliString(item)]
    if isinstance(item, cirq.PauliString):
        if cirq.is_parameterized(item):
            raise ObservableError(f"Observable {position} must have numbers for coefficients, but {item} holds a symbol")
        return [item]
    raise ObservableError(
        f"Observable {position} must be a cirq.PauliString or cirq.PauliSum, but is a {type(item).__name__}: {item}"
    )
