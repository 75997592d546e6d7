"""Serialisation: all circuits come back as they were; everything else is refused by name."""

from __future__ import annotations

import itertools

import cirq
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from qflock.circuits.tensors import VERSION, deserialize, serialize
from qflock.errors import TensorFormatError
from tests.circuits.families import examples, random_numbers

A, B = sympy.symbols("a b")
EXPRESSIONS = [
    A, -A, 2 * A, A / 3, 0.1 * A + B, A * B, A**2 / 7, sympy.sqrt(A), sympy.sin(A) * sympy.exp(B),
    sympy.pi * A, sympy.E**B, sympy.Rational(1, 3) * A, sympy.Max(A, B), sympy.atan2(A, B), abs(A),
    sympy.Float("0.1234567890123456789", 30) * A, A + sympy.Float(0.1), sympy.EulerGamma * A, sympy.pi / 3,
]  # fmt: skip


def _circuit(gate: cirq.Gate) -> cirq.Circuit:
    return cirq.Circuit(gate.on(*cirq.LineQubit.range(cirq.num_qubits(gate))))


def _serialisable() -> list[tuple[str, cirq.Gate]]:
    own = {"ArithmeticGate-0"}  # made by the tests: Cirq's JSON does not know it
    made = [(name, family.make(*random_numbers(family.parameters, seed=3))) for name, family in examples()]
    return [(name, gate) for name, gate in made if name not in own]


@pytest.mark.parametrize(("name", "gate"), _serialisable(), ids=[name for name, _ in _serialisable()])
def test_every_gate_comes_back(name, gate):
    circuit = _circuit(gate)
    assert deserialize(serialize(circuit)) == circuit


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
@pytest.mark.parametrize(
    "gate",
    [
        cirq.rx,
        lambda e: cirq.CZ**e,
        lambda e: cirq.PhasedXZGate(x_exponent=0.1, z_exponent=e, axis_phase_exponent=e),
        lambda e: cirq.ControlledGate(cirq.ry(e), control_values=[0, (0, 1)]),
        lambda e: cirq.DiagonalGate([0, e, 1, 2]),  # through Cirq's JSON
    ],
)
def test_every_expression_comes_back(gate, expression):
    circuit = _circuit(gate(expression))
    assert deserialize(serialize(circuit)) == circuit


def test_an_unknown_function_is_refused():
    circuit = cirq.Circuit(cirq.H(cirq.q(0)), cirq.rx(sympy.Function("mine")(A))(cirq.q(0)))
    with pytest.raises(TensorFormatError, match=r"mine\(a\).*moment 1"):
        serialize(circuit)


def test_operations_moments_qubits_and_tags_come_back():
    line, grid, named = cirq.LineQubit(3), cirq.GridQubit(-1, 2), cirq.NamedQubit("läng")
    other = cirq.LineQid(7, 3)
    inner = cirq.FrozenCircuit(cirq.rx(sympy.sin(A))(line), cirq.CNOT(line, grid))
    circuit = cirq.Circuit(
        cirq.Moment(cirq.X(line), cirq.Y(grid).with_tags("kept", cirq.VirtualTag())),
        cirq.Moment(),
        cirq.Moment(
            cirq.CircuitOperation(inner, repetitions=2, param_resolver={"a": B}, qubit_map={grid: named})
        ),
        cirq.Moment(cirq.ISWAP(line, grid).controlled_by(named, control_values=[0]).with_tags(("a", 1))),
        cirq.Moment(
            cirq.rx(0.2)(line).controlled_by(named, grid, control_values=cirq.SumOfProducts([[0, 1], [1, 0]]))
        ),
        cirq.Moment(cirq.X(line) * cirq.Z(named)),
        cirq.Moment(cirq.PauliStringPhasor(cirq.X(line) * cirq.Y(grid), exponent_neg=A)),
        cirq.Moment(cirq.global_phase_operation(1j), cirq.X(cirq.q(1, 1))),
        cirq.Moment(cirq.measure(line, grid, key="m")),
        cirq.Moment(cirq.X(line).with_classical_controls("m"), cirq.XPowGate(dimension=3).on(other)),
        cirq.Moment(cirq.depolarize(0.1)(line)),
        cirq.Moment(cirq.H(line), tags=("moment",)),
    )
    back = deserialize(serialize(circuit))
    assert back == circuit
    assert [m.tags for m in back] == [m.tags for m in circuit]
    assert [op.tags for op in back.all_operations()] == [op.tags for op in circuit.all_operations()]


@settings(max_examples=50, deadline=None)
@given(
    angles=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1
    )
)
def test_numbers_come_back_exactly_whatever_was_read_before(angles):
    for x, y, z in angles:
        a, b = cirq.LineQubit.range(2)
        circuit = cirq.Circuit(
            cirq.rx(x)(a), cirq.H(b), cirq.CZ(a, b) ** y, cirq.ry(z)(b).controlled_by(a), cirq.X(a) ** 0.5
        )
        back = deserialize(serialize(circuit))
        gates = [op.without_classical_controls() for op in back.all_operations()]
        assert (gates[0].gate._rads, gates[2].gate.exponent, gates[3].gate.sub_gate._rads) == (x, y, z)


@given(
    terms=st.lists(st.tuples(st.complex_numbers(max_magnitude=1e9), st.text("IXYZ", max_size=5)), max_size=6)
)
def test_pauli_sums_come_back(terms):
    q = cirq.LineQubit.range(5)
    strings = [cirq.PauliString(c, dict(zip(q, letters, strict=False))) for c, letters in terms]
    total = sum(strings, cirq.PauliSum())
    assert deserialize(serialize(total)) == total
    for string in strings:
        assert deserialize(serialize(string)) == cirq.PauliSum.wrap(string)


def test_frozen_and_empty_circuits_come_back_as_circuits():
    frozen = cirq.FrozenCircuit(cirq.X(cirq.q(0)))
    assert deserialize(serialize(frozen)) == frozen.unfreeze()
    assert isinstance(deserialize(serialize(frozen)), cirq.Circuit)
    assert deserialize(serialize(cirq.Circuit())) == cirq.Circuit()


def test_what_comes_back_may_be_changed():
    data = serialize(cirq.Circuit(cirq.X(cirq.q(0))))
    deserialize(data).append(cirq.Y(cirq.q(1)))
    assert deserialize(data) == cirq.Circuit(cirq.X(cirq.q(0)))
    data = serialize(cirq.X(cirq.q(0)) + 1)
    changed = deserialize(data)
    changed += cirq.Z(cirq.q(0))
    assert deserialize(data) == cirq.X(cirq.q(0)) + 1


def test_circuits_of_one_shape_differ_in_their_numbers_only():
    q = cirq.LineQubit.range(23)

    def made(angle: float) -> cirq.Circuit:
        chain = [cirq.CZ(a, b) for a, b in itertools.pairwise(q)]
        return cirq.Circuit(cirq.H.on_each(*q), chain, cirq.rx(angle)(q[5]))

    first, second = serialize(made(0.1)), serialize(made(0.2))
    assert len(first) == len(second) and sum(x != y for x, y in zip(first, second, strict=True)) <= 8 + 4
    assert len(first) < len(cirq.to_json(made(0.1), indent=None)) / 15
    before, after = deserialize(first), deserialize(second)
    shared = [x is y for x, y in zip(before.all_operations(), after.all_operations(), strict=True)]
    assert shared.count(False) == 1


def test_bytes_survive_a_numpy_array_of_bytes():
    circuits = [cirq.Circuit(cirq.rx(x)(cirq.q(0))) for x in (0.0, 0.25)]
    array = np.array([serialize(c) for c in circuits])  # drops zero bytes at the end
    assert [deserialize(bytes(data)) for data in array] == circuits


GOOD = serialize(cirq.Circuit(cirq.rx(0.5)(cirq.q(0))))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("text", ["must be bytes", "str"]),
        (None, ["must be bytes", "NoneType"]),
        (3, ["must be bytes", "int"]),
        (b"", ["convert_to_tensor", "b''"]),
        (b"\x08\x96\x01", ["convert_to_tensor", "\\x08\\x96"]),
        (b"qflock99:cabc", [f"version {VERSION}", "version 99"]),
        (GOOD[:-1], ["damaged"]),
        (GOOD[:12], ["damaged"]),
        (GOOD[:30] + b"!" + GOOD[31:], ["damaged"]),
        (GOOD.replace(b":c", b":p"), ["damaged"]),
        (GOOD.replace(b":c", b":x"), ["damaged"]),
    ],
)
def test_other_bytes_are_refused(data, words):
    with pytest.raises(TensorFormatError) as caught:
        deserialize(data)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255))
def test_one_changed_byte_never_goes_unnoticed(place, value):
    data = GOOD[:place] + bytes([value]) + GOOD[place + 1 :]
    if data == GOOD:
        return
    with pytest.raises(TensorFormatError):
        deserialize(data)


@pytest.mark.parametrize("item", [3, "circuit", cirq.X, [cirq.Circuit()], cirq.X(cirq.q(0)).with_tags("a")])
def test_only_circuits_and_pauli_sums_are_serialised(item):
    with pytest.raises(TensorFormatError, match=type(item).__name__):
        serialize(item)


def test_a_gate_that_cirq_cannot_store_is_refused_with_its_moment():
    class Mine(cirq.testing.SingleQubitGate):
        pass

    with pytest.raises(TensorFormatError, match=r"Mine.*moment 0"):
        serialize(cirq.Circuit(Mine().on(cirq.q(0))))


@pytest.mark.parametrize("tag", [object(), frozenset({1})])
def test_a_tag_that_cirq_cannot_store_is_refused(tag):
    with pytest.raises(TensorFormatError, match="cannot be serialised"):
        serialize(cirq.Circuit(cirq.X(cirq.q(0)).with_tags(tag)))


def test_a_gate_that_cirq_stores_wrongly_is_refused():
    class Forgetful(cirq.testing.SingleQubitGate):
        def __init__(self, angle: float = 0.0) -> None:
            self.angle = angle

        def _json_dict_(self):
            return {}

        @classmethod
        def _json_namespace_(cls):
            return "forgetful"

    resolvers = list(cirq.DEFAULT_RESOLVERS)
    cirq.DEFAULT_RESOLVERS.insert(0, lambda name: Forgetful if name == "forgetful.Forgetful" else None)
    try:
        with pytest.raises(TensorFormatError, match=r"gives .* back"):
            serialize(cirq.Circuit(Forgetful(0.3).on(cirq.q(0))))
    finally:
        cirq.DEFAULT_RESOLVERS[:] = resolvers
