"""The simulator on Cirq circuits: against Cirq, with every switch, and its refusals."""

from __future__ import annotations

import itertools

import cirq
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from qflock.circuits.tensors import serialize
from qflock.engine.expectation import expectation
from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator
from qflock.errors import CircuitError, EngineError, MemoryBudgetError, ObservableError, SymbolError
from tests.engine.random_circuits import circuits, dense_expectations, observables

SWITCHES = [Reductions(*switches) for switches in itertools.product([True, False], repeat=4)]
QUBITS = [
    cirq.GridQubit(1, 0),
    cirq.NamedQubit("b"),
    cirq.LineQubit(7),
    cirq.LineQubit(2),
    cirq.NamedQubit("a10"),
]


def numeric_gradient(function, values, step=1e-4):
    """Richardson differences, good to about 1e-9."""
    result = []
    for k in range(len(values)):
        unit = np.eye(len(values))[k]
        narrow = (function(values + step * unit) - function(values - step * unit)) / (2 * step)
        wide = (function(values + 2 * step * unit) - function(values - 2 * step * unit)) / (4 * step)
        result.append((4 * narrow - wide) / 3)
    return np.array(result)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_values_and_gradients_equal_cirq(data):
    qubits = QUBITS[: data.draw(st.integers(1, 5))]
    circuit = data.draw(circuits(qubits, 12))
    prepared = data.draw(st.lists(circuits(qubits, 6, numbers_only=True), min_size=1, max_size=4))
    sums = data.draw(st.lists(observables(qubits), min_size=1, max_size=3))
    simulator = Simulator(
        circuit, sums, dtype="complex128", reductions=data.draw(st.sampled_from(SWITCHES)),
        lanes=data.draw(st.sampled_from(["batch", "amplitude", "auto"])), threads=data.draw(st.integers(1, 2)),
        memory_budget=data.draw(st.sampled_from([None, 1 << 14])),  # the latter keeps few data states, if any
    )  # fmt: skip
    rng = np.random.default_rng(3)
    values = rng.uniform(-2, 2, simulator.parameter_count)
    upstream = rng.normal(size=(len(prepared), len(sums)))

    def expected(parameters):
        resolved = cirq.resolve_parameters(circuit, dict(zip(simulator.symbols, parameters, strict=True)))
        return np.array([dense_expectations(p + resolved, sums, qubits) for p in prepared])

    items = [serialize(p) for p in prepared] if data.draw(st.booleans()) else prepared
    simulator.vjp(values + 1, upstream[1:], items[1:])  # some circuits are known by now, others are not
    result, gradient = simulator.vjp(values, upstream, items)
    np.testing.assert_allclose(result, expected(values), atol=1e-9)
    numeric = numeric_gradient(lambda v: (upstream * expected(v)).sum(), values)
    np.testing.assert_allclose(gradient, numeric.reshape(gradient.shape), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_values_per_sample_equal_one_call_each(data):
    qubits = QUBITS[:4]
    circuit = data.draw(circuits(qubits, 10))
    sums = data.draw(st.lists(observables(qubits), min_size=1, max_size=2))
    prepared = data.draw(st.lists(circuits(qubits, 4, numbers_only=True), min_size=3, max_size=3))
    simulator = Simulator(circuit, sums, dtype="complex128")
    values = np.random.default_rng(0).uniform(-2, 2, (3, simulator.parameter_count))
    upstream = np.random.default_rng(1).normal(size=(3, len(sums)))
    result, gradient = simulator.vjp(values, upstream, prepared)
    for s in range(3):
        one, one_gradient = simulator.vjp(values[s], upstream[[s]], [prepared[s]])
        np.testing.assert_allclose(result[s], one[0], atol=1e-12)
        np.testing.assert_allclose(gradient[s], one_gradient, atol=1e-12)


def test_ten_qubits_in_single_precision():
    qubits = cirq.LineQubit.range(10)
    angles = sympy.symbols("w0:10")
    layer = [cirq.ry(a)(q) for a, q in zip(angles, qubits, strict=True)]
    circuit = cirq.Circuit(layer, [cirq.CZ(a, b) for a, b in itertools.pairwise(qubits)], layer)
    sums = [cirq.X(qubits[0]) * cirq.Z(qubits[9]), cirq.Y(qubits[4])]
    values = np.linspace(-1, 1, 10)
    for lanes in ("batch", "amplitude"):
        result, _ = Simulator(circuit, sums, lanes=lanes, reductions=Reductions.none()).vjp(
            values, np.ones((1, 2))
        )
        resolved = cirq.resolve_parameters(circuit, dict(zip(map(str, angles), values, strict=True)))
        np.testing.assert_allclose(result[0], dense_expectations(resolved, sums, qubits), atol=1e-5)


def test_a_wide_circuit_of_small_cones():
    qubits = cirq.LineQubit.range(1000)
    angle = sympy.Symbol("w")
    circuit = cirq.Circuit(
        cirq.ry(angle).on_each(*qubits), [cirq.CZ(a, b) for a, b in itertools.pairwise(qubits)]
    )
    simulator = Simulator(circuit, [cirq.Z(q) for q in qubits])
    values, gradient = simulator.vjp([0.4], np.ones((1, 1000)))
    np.testing.assert_allclose(values, np.cos(0.4), atol=1e-6)
    np.testing.assert_allclose(gradient, [-1000 * np.sin(0.4)], rtol=1e-5)


def test_forgotten_data_circuits_are_prepared_anew(monkeypatch):
    monkeypatch.setattr("qflock.engine.simulator._KNOWN_DATA_CIRCUITS", 4)
    q = cirq.LineQubit(0)
    simulator = Simulator(cirq.Circuit(cirq.rx(sympy.Symbol("a"))(q)), [cirq.Z(q)])
    turns = np.arange(10) / 10
    data = [serialize(cirq.Circuit(cirq.rx(t)(q))) for t in turns]
    for first, last in ((0, 3), (3, 6), (0, 10), (2, 4)):
        values = simulator.expectations([0.3], data[first:last])
        np.testing.assert_allclose(values[:, 0], np.cos(turns[first:last] + 0.3), atol=1e-6)


def test_results_repeat_exactly():
    qubits = cirq.LineQubit.range(12)
    angles = sympy.symbols("w0:12")
    circuit = cirq.Circuit(
        [cirq.rx(a)(q) for a, q in zip(angles, qubits, strict=True)],
        [cirq.ISWAP(a, b) ** 0.3 for a, b in itertools.pairwise(qubits)],
    )
    simulator = Simulator(circuit, [cirq.Z(q) for q in qubits], reductions=Reductions.none(), threads=2)
    first = simulator.vjp(np.arange(12.0), np.ones((1, 12)))
    for _ in range(5):
        again = simulator.vjp(np.arange(12.0), np.ones((1, 12)))
        assert (first[0] == again[0]).all()
        assert (first[1] == again[1]).all()


def test_progress_never_goes_back_and_ends_at_one():
    qubits = cirq.LineQubit.range(14)
    angle = sympy.Symbol("w")
    circuit = cirq.Circuit(
        cirq.rx(angle).on_each(*qubits), [cirq.CZ(a, b) for a, b in itertools.pairwise(qubits)]
    )
    seen: list[float] = []
    simulator = Simulator(circuit, [cirq.Y(q) for q in qubits])
    simulator.vjp([[0.1], [0.2], [0.3]], np.ones((3, 14)), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)


def test_a_progress_bar_appears_where_work_is_long(monkeypatch, capsys):
    monkeypatch.setattr("qflock.engine.progress._QUIET_SECONDS", 0)
    q = cirq.LineQubit(0)
    circuit = cirq.Circuit(cirq.rx(sympy.Symbol("w"))(q))
    for wanted in (None, True):
        expectation(circuit, cirq.Z(q), {"w": [0.1, 0.2]}, gradient=True, progress=wanted)
        assert ("1 qubits 100%" in capsys.readouterr().err) == bool(wanted)


def test_an_observable_that_is_zero():
    q = cirq.LineQubit(0)
    circuit = cirq.Circuit(cirq.X(q) ** sympy.Symbol("w"))
    values, gradient = expectation(circuit, [0.0 * cirq.Z(q), cirq.Z(q)], {"w": 0.5}, gradient=True)
    np.testing.assert_allclose(values, [0, 0], atol=1e-6)
    np.testing.assert_allclose(gradient["w"], [0, -np.pi], atol=1e-5)


def test_precision_may_be_a_numpy_type():
    q = cirq.LineQubit(0)
    assert expectation(cirq.Circuit(cirq.X(q)), cirq.Z(q), dtype=np.complex128) == [-1]


def test_batch_of_none():
    q = cirq.LineQubit(0)
    simulator = Simulator(cirq.Circuit(cirq.rx(sympy.Symbol("a"))(q)), cirq.Z(q))
    values, gradient = simulator.vjp([0.3], np.zeros((0, 1)), [])
    assert values.shape == (0, 1)
    assert gradient.tolist() == [0.0]


Q = cirq.LineQubit(0)
MODEL = cirq.Circuit(cirq.rx(sympy.Symbol("alpha"))(Q))
LINE = cirq.LineQubit.range(2000)
WIDE = cirq.Circuit(cirq.CX(a, b) ** 0.3 for a, b in itertools.pairwise(LINE))
Z_CHAIN = cirq.PauliString({q: cirq.Y for q in LINE})


@pytest.mark.parametrize(
    ("error", "words", "action"),
    [
        (SymbolError, "alpha.*nan", lambda: Simulator(MODEL, cirq.Z(Q)).expectations([np.nan])),
        (SymbolError, "alpha.*inf", lambda: Simulator(MODEL, cirq.Z(Q)).expectations([np.inf])),
        (SymbolError, "shape", lambda: Simulator(MODEL, cirq.Z(Q)).expectations([1.0, 2.0])),
        (SymbolError, "beta", lambda: Simulator(MODEL, cirq.Z(Q), symbols=["alpha", "beta"])),
        (SymbolError, "alpha", lambda: Simulator(MODEL, cirq.Z(Q), symbols=["beta"])),
        (SymbolError, "alpha", lambda: Simulator(MODEL, cirq.Z(Q)).expectations([1.0], [MODEL])),
        (
            CircuitError,
            "Data must be circuits, but holds a int",
            lambda: Simulator(MODEL, cirq.Z(Q)).expectations([1.0], [3]),
        ),
        (
            CircuitError,
            "must have a unitary matrix",
            lambda: Simulator(
                cirq.Circuit(cirq.MatrixGate(np.array([[1, 1], [0, 1]]), unitary_check=False)(Q)), cirq.Z(Q)
            ),
        ),
        (MemoryBudgetError, r"needs 2\^2003 B for a state of 2000 qubits", lambda: Simulator(WIDE, Z_CHAIN)),
        (ObservableError, "empty", lambda: Simulator(MODEL, [])),
        (ObservableError, "real", lambda: Simulator(MODEL, 1j * cirq.Z(Q))),
        (CircuitError, "must be a cirq.Circuit, but is a str", lambda: Simulator("hello", cirq.Z(Q))),
        (CircuitError, "measure", lambda: Simulator(MODEL + cirq.measure(Q), cirq.Z(Q))),
        (CircuitError, "depolarize", lambda: Simulator(MODEL + cirq.depolarize(0.1)(Q), cirq.Z(Q))),
        (
            CircuitError,
            "dimension",
            lambda: Simulator(cirq.Circuit(cirq.IdentityGate(1, (3,))(cirq.LineQid(0, 3))), cirq.Z(Q)),
        ),
        (EngineError, "upstream", lambda: Simulator(MODEL, cirq.Z(Q)).vjp([1.0], [1.0, 2.0])),
        (EngineError, "dtype", lambda: Simulator(MODEL, cirq.Z(Q), dtype="float32")),
        (EngineError, "lanes", lambda: Simulator(MODEL, cirq.Z(Q), lanes="rows")),
        (EngineError, "threads", lambda: Simulator(MODEL, cirq.Z(Q), threads=0)),
    ],
)
def test_bad_input_is_named(error, words, action):
    with pytest.raises(error, match=words) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_a_state_that_is_too_large_says_how_large():
    qubits = cirq.LineQubit.range(45)
    circuit = cirq.Circuit([cirq.ISWAP(a, b) ** sympy.Symbol("w") for a, b in itertools.pairwise(qubits)])
    with pytest.raises(MemoryBudgetError, match=r"bservable 0.*45 qubits.*GiB"):
        Simulator(circuit, cirq.X(qubits[0]) * cirq.Z(qubits[44]))


def test_a_budget_below_one_state_names_the_smallest_that_works():
    qubits = cirq.LineQubit.range(10)
    circuit = cirq.Circuit([cirq.ISWAP(a, b) ** sympy.Symbol("w") for a, b in itertools.pairwise(qubits)])
    word = cirq.X(qubits[0]) * cirq.Z(qubits[9])
    with pytest.raises(MemoryBudgetError, match=f"{2 * 8 * 2**10} bytes"):
        Simulator(circuit, word, memory_budget=10000).vjp([0.1], [[1.0]])
    Simulator(circuit, word, memory_budget=2 * 8 * 2**10).vjp([0.1], [[1.0]])
