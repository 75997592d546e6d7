"""Observables: Hermitian sums of Pauli strings in one plain form."""

from __future__ import annotations

import cmath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import cirq
import numpy as np

from qflock.errors import ObservableError

Letter: TypeAlias = Literal["X", "Y", "Z"]

_LETTERS: dict[cirq.Pauli, Letter] = {cirq.X: "X", cirq.Y: "Y", cirq.Z: "Z"}
_ALLOWED = "a cirq.PauliString or cirq.PauliSum such as cirq.Z(q) or 0.5 * cirq.X(a) * cirq.X(b) + 1"


@dataclass(frozen=True, slots=True)
class PauliTerm:
    """A real coefficient times a product of Pauli operators, sorted by qubit; never empty."""

    coefficient: float
    paulis: tuple[tuple[cirq.Qid, Letter], ...]


@dataclass(frozen=True, slots=True)
class Observable:
    """A constant plus a sum of Pauli terms."""

    constant: float
    terms: tuple[PauliTerm, ...]


def normalise(observables: object) -> tuple[Observable, ...]:
    """Brings observables into one form.

    Args:
        observables: A `cirq.PauliString` or `cirq.PauliSum` of any length, or a list or array of them.

    Returns:
        One `Observable` for each, in order.

    Raises:
        ObservableError: If one is not a Hermitian sum of Pauli strings (its position is named), or there is
            none.

    Example:
        >>> import cirq
        >>> a, b = cirq.LineQubit.range(2)
        >>> normalise([2 * cirq.Z(b) * cirq.X(a) + 3])[0].terms[0].paulis
        ((cirq.LineQubit(0), 'X'), (cirq.LineQubit(1), 'Z'))
    """
    if isinstance(observables, (cirq.PauliString, cirq.PauliSum)):
        observables = [observables]
    if isinstance(observables, (str, bytes, dict)) or not isinstance(observables, Iterable):
        raise ObservableError(
            f"Observables must be {_ALLOWED}, or a list of such, but are of type {type(observables).__name__}"
        )
    if isinstance(observables, np.ndarray):
        observables = np.atleast_1d(observables)
    result = tuple(_observable(item, place) for place, item in enumerate(observables))
    if not result:
        raise ObservableError(f"The list of observables is empty; it must hold at least one: {_ALLOWED}")
    return result


def _observable(item: object, place: int) -> Observable:
    if not isinstance(item, cirq.PauliString | cirq.PauliSum):
        raise ObservableError(
            f"Observable {place} must be {_ALLOWED}, but is {item!r}, a {type(item).__name__}"
        )
    for qubit in item.qubits:
        if qubit.dimension != 2:
            raise ObservableError(
                f"Observable {place} must act on qubits, but {qubit!r} is a qudit of dimension {qubit.dimension}"
            )
    strings = [item] if isinstance(item, cirq.PauliString) else list(item)
    constant = 0.0
    terms: list[PauliTerm] = []
    for string in strings:
        coefficient = _real(string, place)
        if len(string) == 0:
            constant += coefficient
        else:
            paulis = tuple(sorted((qubit, _LETTERS[pauli]) for qubit, pauli in string.items()))
            terms.append(PauliTerm(coefficient, paulis))
    return Observable(constant, tuple(terms))


def _real(string: cirq.PauliString[cirq.Qid], place: int) -> float:
    if cirq.is_parameterized(string):
        raise ObservableError(
            f"Observable {place} must have numbers as coefficients, but has {string.coefficient}; "
            "put symbols into the circuit"
        )
    coefficient = complex(string.coefficient)
    if not cmath.isfinite(coefficient):
        raise ObservableError(
            f"Observable {place} must have finite coefficients, but has {coefficient} in {string}"
        )
    if abs(coefficient.imag) > 1e-9 * max(1.0, abs(coefficient)):
        raise ObservableError(
            f"Observable {place} must be Hermitian, with real coefficients, but has {coefficient} in {string}"
        )
    return coefficient.real
