"""The native engine against the oracle on random programs: lanes, precisions, threads, instruction sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qflock.engine import oracle
from qflock.engine.compiled import native_model, native_program
from qflock.engine.evaluation import Settings, evaluate
from qflock.engine.processor import available_instruction_sets, native_for
from qflock.program.program import Program
from tests.engine.random_programs import angles_of, programs, thousand_gates, words

TOLERANCE = {"complex64": 2e-5, "complex128": 1e-10}


def run(program, word_list, angles, upstream, *, isa, lanes, dtype, threads=1, data=None):
    module = native_for(isa)
    bits = max(program.qubit_count, 4)
    table = module.DataTable(module.StateBudget(1 << 12))
    entries = None if data is None else np.array([table.add(native_program(module, d, bits)) for d in data])
    samples = len(upstream)
    return evaluate(
        module, native_model(module, program, word_list, bits), table, entries, samples, angles,
        upstream, Settings(dtype, lanes, threads, None), "observable 0",
    )  # fmt: skip


@pytest.mark.parametrize("isa", available_instruction_sets())
@pytest.mark.parametrize("lanes", ["batch", "amplitude"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_values_and_gradients_equal_the_oracle(isa, lanes, dtype, data):
    program = data.draw(programs(max_qubits=7))
    word_list = data.draw(words(program.qubit_count))
    initial = data.draw(
        st.lists(programs(program.qubit_count, program.qubit_count, 6), min_size=1, max_size=3)
    )
    initial = [Program(p.qubit_count, tuple(g for g in p.gates if g.expression < 0)) for p in initial]
    angles = angles_of(program, 1)
    upstream = np.random.default_rng(2).normal(size=(len(initial), len(word_list)))
    result = run(
        program, word_list, angles, upstream, isa=isa, lanes=lanes, dtype=dtype, threads=2, data=initial
    )
    expected = np.zeros(program.expression_count)
    for s, prepared in enumerate(initial):
        start = oracle.state_after(prepared, np.zeros(0))
        np.testing.assert_allclose(
            result.values[s], oracle.expectations(program, word_list, angles, start), atol=TOLERANCE[dtype]
        )
        expected += upstream[s] @ oracle.jacobian(program, word_list, angles, start)
    np.testing.assert_allclose(result.gradient, expected, atol=TOLERANCE[dtype] * 10)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_ten_qubits_and_angles_per_sample(data):
    program = data.draw(programs(max_qubits=10))
    word_list = data.draw(words(program.qubit_count))
    angles = angles_of(program, 3, batch=3)
    upstream = np.random.default_rng(4).normal(size=(3, len(word_list)))
    result = run(
        program,
        word_list,
        angles,
        upstream,
        isa=available_instruction_sets()[0],
        lanes="auto",
        dtype="complex64",
        threads=2,
    )
    for s in range(3):
        np.testing.assert_allclose(
            result.values[s], oracle.expectations(program, word_list, angles[s]), atol=2e-5
        )
        expected = upstream[s] @ oracle.jacobian(program, word_list, angles[s])
        np.testing.assert_allclose(result.gradient[s], expected, atol=2e-4)


@pytest.mark.parametrize("isa", available_instruction_sets())
@pytest.mark.parametrize("lanes", ["batch", "amplitude"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_thousand_gates_in_single_precision(isa, lanes, threads):
    program = thousand_gates(qubit_count=10, seed=5)
    word_list = [((0, "Z"), (9, "X")), ((4, "Y"),), ((3, "Z"),)]
    angles = angles_of(program, 6)
    upstream = np.ones((1, 3))
    exact = run(program, word_list, angles, upstream, isa="baseline", lanes="amplitude", dtype="complex128")
    fast = run(program, word_list, angles, upstream, isa=isa, lanes=lanes, dtype="complex64", threads=threads)
    np.testing.assert_allclose(fast.values, exact.values, atol=1e-5)
    np.testing.assert_allclose(fast.gradient, exact.gradient, atol=1e-5 * np.abs(exact.gradient).max())
