"""Fusion keeps the program's meaning."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from qflock.engine import oracle
from qflock.program.fuse import embed, factors, fuse
from qflock.program.operators import fixed
from qflock.program.program import Gate, Program
from tests.engine.random_programs import angles_of, programs, random_unitary


@settings(max_examples=60, deadline=None)
@given(programs(max_qubits=6))
def test_the_product_of_blocks_is_the_program(program):
    angles = angles_of(program, 5)
    state = oracle.ground_state(program.qubit_count)
    for block in fuse(program):
        size = len(block.qubits)
        matrix = np.eye(1 << size)
        for operator, places, expression in factors(block):
            weights = (
                [1.0] if operator.is_fixed else np.exp(1j * np.pi * operator.half_turns * angles[expression])
            )
            matrix = np.tensordot(weights, embed(operator, places, size), axes=1) @ matrix
        state = oracle.apply(matrix, block.qubits[::-1], state)
    np.testing.assert_allclose(state, oracle.state_after(program, angles), atol=1e-12)


@given(programs(min_qubits=2, max_qubits=6))
def test_small_blocks_have_two_ascending_qubits(program):
    for block in fuse(program):
        assert list(block.qubits) == sorted(set(block.qubits))
        assert len(block.qubits) >= 2


def test_gates_of_a_convolution_become_one_block():
    gates = [
        Gate(q, fixed(random_unitary(len(q), k)))
        for k, q in enumerate([(0,), (1,), (0, 1), (1, 0), (1,), (0,)])
    ]
    assert len(fuse(Program(2, tuple(gates)))) == 1


def test_single_qubit_layer_is_paired():
    gates = [Gate((q,), fixed(random_unitary(1, q))) for q in range(6)]
    assert [b.qubits for b in fuse(Program(6, tuple(gates)))] == [(0, 1), (2, 3), (4, 5)]
