"""Observables: one form for all that is Hermitian, an error with its position for all that is not."""

from __future__ import annotations

import cirq
import numpy as np
import pytest
import sympy

from qflock.circuits.observables import Observable, PauliTerm, normalise
from qflock.errors import ObservableError

A, B = cirq.NamedQubit("b"), cirq.NamedQubit("a")


def test_single_observables_become_one():
    expected = (Observable(0.0, (PauliTerm(1.0, ((A, "Z"),)),)),)
    for form in (
        cirq.Z(A),
        cirq.PauliString(cirq.Z(A)),
        cirq.PauliSum.wrap(cirq.Z(A)),
        [cirq.Z(A)],
        (cirq.Z(A),),
    ):
        assert normalise(form) == expected


def test_terms_are_sorted_by_qubit_and_constants_add_up():
    [observable] = normalise([2 * cirq.X(A) * cirq.Y(B) - 0.5 + cirq.PauliString() * 2])
    assert observable == Observable(1.5, (PauliTerm(2.0, ((B, "Y"), (A, "X"))),))


def test_a_constant_alone_is_an_observable():
    assert normalise([cirq.PauliString() * 3, cirq.PauliSum()]) == (Observable(3.0, ()), Observable(0.0, ()))


def test_arrays_and_generators_keep_their_order():
    array = np.empty(2, dtype=object)
    array[0], array[1] = cirq.Z(A), cirq.X(B)
    assert normalise(array) == normalise(x for x in array) == normalise(list(array))


def test_rounding_errors_in_coefficients_are_real():
    assert normalise((1 + 1e-12j) * cirq.Z(A))[0].terms[0].coefficient == 1.0


@pytest.mark.parametrize(
    ("observables", "words"),
    [
        ([], ["empty"]),
        (np.array([]), ["empty"]),
        (None, ["NoneType"]),
        ("Z", ["str"]),
        (1.0, ["float"]),
        ([cirq.Z(A), 1j * cirq.X(A)], ["Observable 1", "Hermitian", "1j"]),
        ([cirq.Z(A) + 1j], ["Observable 0", "Hermitian"]),
        ([cirq.Z(A), cirq.Z(A), float("nan") * cirq.X(A)], ["Observable 2", "finite", "nan"]),
        ([cirq.Z(A), cirq.Circuit()], ["Observable 1", "Circuit"]),
        ([[cirq.Z(A)]], ["Observable 0", "list"]),
        ([cirq.H(A)], ["Observable 0", "GateOperation"]),
        ([cirq.PauliString({A: "X"}, coefficient=sympy.Symbol("w"))], ["Observable 0", "w"]),
    ],
)
def test_what_is_no_observable_is_named(observables, words):
    with pytest.raises(ObservableError) as caught:
        normalise(observables)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_qudit_is_refused():
    on_qudit = cirq.PauliSum.wrap(cirq.Z(cirq.LineQubit(0))).with_qubits(cirq.LineQid(0, 3))
    with pytest.raises(ObservableError, match=r"must act on qubits, but .* is a qudit of dimension 3"):
        normalise(on_qudit)
