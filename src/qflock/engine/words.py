"""Observables on numbered qubits: the distinct Pauli words among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cirq
import numpy as np
from numpy.typing import NDArray

from qflock.circuits.observables import Observable
from qflock.engine.compiled import PauliWord


def number_qubits(circuit: cirq.AbstractCircuit, observables: Sequence[Observable]) -> dict[cirq.Qid, int]:
    """A number for each qubit of circuit and observables, in the order of the qubits."""
    qubits = set(circuit.all_qubits())
    for observable in observables:
        for term in observable.terms:
            qubits.update(q for q, _ in term.paulis)
    return {q: k for k, q in enumerate(sorted(qubits))}


def pauli_words(
    observables: Sequence[Observable], numbers: Mapping[cirq.Qid, int]
) -> tuple[tuple[PauliWord, ...], NDArray[np.float64]]:
    """The distinct Pauli words that count, and the coefficient of each in each observable, `(observables, words)`."""
    words: dict[PauliWord, int] = {}
    entries = []
    for row, observable in enumerate(observables):
        for term in observable.terms:
            word = tuple(sorted((numbers[q], str(pauli)) for q, pauli in term.paulis))
            entries.append((row, words.setdefault(word, len(words)), term.coefficient))
    coefficients = np.zeros((len(observables), len(words)))
    for row, column, coefficient in entries:
        coefficients[row, column] += coefficient
    used = np.asarray(coefficients.any(axis=0))
    return tuple(word for word, column in words.items() if used[column]), coefficients[:, used]
