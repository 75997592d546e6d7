"""Cone, split and canonical numbering: every part has the values and gradients of the whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qflock.engine import oracle
from qflock.engine.reductions import Reductions, data_cone, parts_of
from qflock.program.canonical import canonical
from qflock.program.cone import GateOrder
from qflock.program.operators import fixed
from qflock.program.program import Gate, Program
from tests.engine.random_programs import X, Z, angles_of, programs, random_unitary, words

CZ = fixed(np.diag([1, 1, 1, -1]).astype(complex))
H = fixed((X + Z) / np.sqrt(2))
CHOICES = [Reductions(cone=c, split=s) for c, s in itertools.product([False, True], repeat=2)]


@pytest.mark.parametrize("reductions", CHOICES)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_parts_have_the_values_and_gradients_of_the_whole(reductions, data):
    program = data.draw(programs(max_qubits=6, max_gates=14))
    word_list = data.draw(words(program.qubit_count))
    prepared = data.draw(programs(program.qubit_count, program.qubit_count, 10))
    prepared = Program(program.qubit_count, tuple(g for g in prepared.gates if g.expression < 0))
    angles = angles_of(program, 6)
    start = oracle.state_after(prepared, np.zeros(0))
    values = oracle.expectations(program, word_list, angles, start)
    jacobian = oracle.jacobian(program, word_list, angles, start)
    seen = []
    for part in parts_of(program, word_list, reductions):
        cone = data_cone(part, GateOrder(prepared.gates), program.qubit_count, reductions)
        count = len(cone.qubits)
        before = oracle.state_after(Program(count, cone.gates), np.zeros(0))
        model = Program(count, part.model.gates, program.expression_count)
        own = list(part.words)
        np.testing.assert_allclose(
            oracle.expectations(model, part.local_words, angles, before), values[own], atol=1e-10
        )
        np.testing.assert_allclose(
            oracle.jacobian(model, part.local_words, angles, before), jacobian[own], atol=1e-10
        )
        seen.extend(own)
    assert sorted(seen) == list(range(len(word_list)))


def test_a_chain_of_controlled_z_gates_does_not_grow_the_cone():
    gates = [Gate((q,), H) for q in range(20)] + [Gate((q, q + 1), CZ) for q in range(19)]
    cone = GateOrder(gates).cone({10: True})
    assert sorted(cone.support) == [9, 10, 11]
    assert len(cone.gates) == 5


def test_a_rotation_about_z_before_a_control_is_dead():
    gates = [
        Gate((0,), fixed(np.diag([1, 1j]))),
        Gate((0, 1), fixed(np.eye(4)[[0, 1, 3, 2]].astype(complex))),
    ]
    assert GateOrder(gates).cone({0: False}).gates == ()
    assert len(GateOrder(gates).cone({1: False}).gates) == 1


@settings(max_examples=60, deadline=None)
@given(programs(min_qubits=3, max_qubits=6), st.randoms(use_true_random=False))
def test_canonical_numbering_ignores_the_names_of_qubits(program, random):
    names = list(range(program.qubit_count))
    random.shuffle(names)
    cone = GateOrder(program.gates).cone({0: False})
    renamed = [Gate(tuple(names[q] for q in g.qubits), g.operator, g.expression) for g in cone.gates]
    assert canonical(cone.gates, [0]).key == canonical(renamed, [names[0]]).key
    assert len(canonical(cone.gates, [0]).gates) == len(cone.gates)


def test_different_programs_have_different_keys():
    one, two = fixed(random_unitary(2, 1)), fixed(random_unitary(2, 2))
    keys = {canonical([Gate(q, op)], [0]).key for q in [(0, 1), (1, 0)] for op in (one, two)}
    assert len(keys) == 4
