"""Lowering: the product of a gate's parts is the gate, and its derivative is the gate's derivative."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import cirq
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from qflock.circuits.gates import Fixed, Rotation, lower_circuit, lower_operation
from qflock.errors import CircuitError
from tests.circuits import dense
from tests.circuits.families import ABSTRACT, FAMILIES, NOT_UNITARY, Family, examples

NAMES = ("a", "b", "c")
SYMBOLS = sympy.symbols(NAMES)
NUMBERS = st.floats(-4, 4).map(lambda x: round(x, 3))


def _expressions() -> st.SearchStrategy[sympy.Expr]:
    a, b, c = SYMBOLS
    forms = [a, -b, 2 * c, a + b / 3, 0.7 * a - 0.1, a * b, sympy.sin(c), sympy.pi * b, a**2]
    return st.sampled_from(forms)


@st.composite
def _cases(draw: st.DrawFn, family: Family) -> tuple[cirq.Gate, list[object], dict[str, float]]:
    parameters = [draw(NUMBERS | _expressions()) for _ in range(family.parameters)]
    values = {name: draw(NUMBERS) for name in NAMES}
    return family.make(*parameters), parameters, values


def _resolved(family: Family, parameters: Sequence[object], values: dict[str, float]) -> cirq.Gate:
    """The gate that symbols with values make, without Cirq's resolver (which drops some global shifts)."""
    numbers = [float(p.subs(values).evalf()) if isinstance(p, sympy.Expr) else p for p in parameters]
    return family.make(*numbers)


def _qubits(gate: cirq.Gate) -> list[cirq.Qid]:
    return cirq.LineQubit.range(cirq.num_qubits(gate))[::-1]  # not in sorted order


def _unitary(gate: cirq.Gate, qubits: Sequence[cirq.Qid]) -> np.ndarray:
    operation = gate.on(*qubits)
    return cirq.unitary(cirq.Circuit(operation)) if not qubits else cirq.Circuit(operation).unitary(qubits)


def test_every_gate_class_of_cirq_is_known():
    classes = {c for c in vars(cirq).values() if inspect.isclass(c) and issubclass(c, cirq.Gate)}
    unknown = {c.__name__ for c in classes - set(FAMILIES) - NOT_UNITARY - ABSTRACT}
    assert not unknown, (
        f"add {unknown} to tests/circuits/families.py, and a row to the gate table if it needs one"
    )


@pytest.mark.parametrize(("name", "family"), examples(), ids=[name for name, _ in examples()])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_the_product_of_the_parts_is_the_gate(name, family, data):
    gate, parameters, values = data.draw(_cases(family))
    qubits = _qubits(gate)
    parts = lower_operation(gate.on(*qubits))
    if not qubits:
        assert list(parts) == []  # a phase of the whole state
        return
    expected = _unitary(_resolved(family, parameters, values), qubits)
    np.testing.assert_allclose(
        dense.unitary(parts, qubits, values), expected, atol=1e-7 if "Clifford" in name else 1e-9
    )


@pytest.mark.parametrize(
    ("name", "family"),
    [(n, f) for n, f in examples() if 0 < f.parameters < 9],
    ids=[n for n, f in examples() if 0 < f.parameters < 9],
)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_the_derivative_of_the_parts_is_the_derivative_of_the_gate(name, family, data):
    gate, _, values = data.draw(_cases(family))
    qubits = _qubits(gate)
    parts = lower_operation(gate.on(*qubits))
    step = 1e-5
    for symbol in NAMES:
        above, below = ({**values, symbol: values[symbol] + sign * step} for sign in (1, -1))
        slope = (dense.unitary(parts, qubits, above) - dense.unitary(parts, qubits, below)) / (2 * step)
        np.testing.assert_allclose(dense.derivative(parts, qubits, values, symbol), slope, atol=1e-6)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_gate_under_any_control(data):
    _, family = data.draw(st.sampled_from([(n, f) for n, f in examples() if f.parameters < 9]))
    gate, parameters, values = data.draw(_cases(family))
    targets = _qubits(gate)
    count = data.draw(st.integers(1, max(1, 7 - len(targets))))
    controls = cirq.LineQubit.range(20, 20 + count)
    control_values = data.draw(st.lists(st.sampled_from([0, 1, (0, 1)]), min_size=count, max_size=count))
    parts = lower_operation(gate.on(*targets).controlled_by(*controls, control_values=control_values))
    expected = _controlled(cirq.unitary(_resolved(family, parameters, values)), control_values)
    got = dense.unitary(parts, [*controls, *targets], values)
    np.testing.assert_allclose(got, expected, atol=1e-7)


def _controlled(matrix: np.ndarray, control_values: Sequence[int | tuple[int, ...]]) -> np.ndarray:
    on = np.ones(1)
    for value in control_values:
        allowed = value if isinstance(value, tuple) else (value,)
        on = np.kron(on, [float(bit in allowed) for bit in (0, 1)])
    return np.kron(np.diag(on), matrix) + np.kron(np.diag(1 - on), np.eye(len(matrix)))


def test_a_phase_matters_under_a_control_only():
    q, control = cirq.LineQubit.range(2)
    a = sympy.Symbol("a")
    phase = cirq.global_phase_operation(sympy.exp(sympy.I * a) * sympy.I ** (2 * a))
    assert lower_circuit(cirq.Circuit(phase, cirq.X(q)))[0].matrix.tolist() == [[0, 1], [1, 0]]
    [part] = lower_operation(phase.controlled_by(control, control_values=[0]))
    expected = np.diag([np.exp(1j * (0.3 + np.pi * 0.3)), 1])
    np.testing.assert_allclose(dense.unitary([part], [control], {"a": 0.3}), expected, atol=1e-12)


def test_a_phase_inside_a_decomposition_is_kept():
    q = cirq.LineQubit.range(5)
    a, values = sympy.Symbol("a"), {"a": 0.4}
    gate = cirq.DiagonalGate([a] + [0.1] * 31)
    expected = np.diag(np.exp(1j * np.array([0.4] + [0.1] * 31)))
    np.testing.assert_allclose(dense.unitary(lower_operation(gate.on(*q)), q, values), expected, atol=1e-12)


def test_twelve_controls_of_a_rotation_split_into_small_parts():
    *controls, target = cirq.LineQubit.range(13)
    parts = lower_operation(cirq.rx(sympy.Symbol("a")).on(target).controlled_by(*controls))
    assert max(len(part.qubits) for part in parts) <= 4
    state = np.zeros(2**13, dtype=complex)
    state[-1] = 1.0
    for part in parts:
        state = dense.apply(dense.matrix_of(part, {"a": 0.7}), part.qubits, [*controls, target], state)
    np.testing.assert_allclose(state[-2:], [-1j * np.sin(0.35), np.cos(0.35)], atol=1e-12)


def test_circuit_operations_are_unrolled():
    a, b = cirq.LineQubit.range(2)
    x, y = sympy.symbols("x y")
    inner = cirq.FrozenCircuit(cirq.rx(x)(a), cirq.CNOT(a, b) ** y)
    operation = cirq.CircuitOperation(
        inner, repetitions=3, param_resolver={"x": 2 * y}, qubit_map={a: b, b: a}
    ).with_tags("tag")
    values = {"y": 0.3}
    expected = cirq.resolve_parameters(cirq.Circuit(operation.untagged), values).unitary([a, b])
    np.testing.assert_allclose(dense.unitary(lower_operation(operation), [a, b], values), expected, atol=1e-6)
    backwards = cirq.CircuitOperation(inner, repetitions=-2)
    expected = cirq.resolve_parameters(cirq.Circuit(backwards), {"x": 0.1, "y": 0.3}).unitary([a, b])
    got = dense.unitary(lower_operation(backwards), [a, b], {"x": 0.1, "y": 0.3})
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_controlled_circuit_operation():
    a, b, c = cirq.LineQubit.range(3)
    inner = cirq.CircuitOperation(
        cirq.FrozenCircuit(cirq.H(a), cirq.global_phase_operation(1j), cirq.CZ(a, b))
    )
    got = dense.unitary(lower_operation(inner.controlled_by(c)), [c, a, b], {})
    expected = _controlled(1j * cirq.Circuit(cirq.H(a), cirq.CZ(a, b)).unitary(), [1])
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_pauli_string_as_an_operation():
    q = cirq.LineQubit.range(6)
    string = -1j * cirq.X(q[0]) * cirq.Y(q[3]) * cirq.Z(q[5])
    used = [q[0], q[3], q[5]]
    np.testing.assert_allclose(
        dense.unitary(lower_operation(string), used, {}), cirq.unitary(string), atol=1e-12
    )


@pytest.mark.parametrize(
    "gate", [cirq.X, cirq.H, cirq.CNOT, cirq.SWAP, cirq.ry(0.3), cirq.givens(0.4), cirq.CCX]
)
def test_real_gates_have_exactly_real_matrices(gate):
    [part] = lower_operation(gate.on(*_qubits(gate)))
    assert isinstance(part, Fixed) and not part.matrix.imag.any()


def test_a_sympy_constant_is_a_number():
    q = cirq.LineQubit(0)
    for gate in (
        cirq.rx(sympy.pi / 2),
        cirq.PhasedXZGate(x_exponent=sympy.Rational(1, 2), z_exponent=0, axis_phase_exponent=0),
    ):
        parts = lower_operation(gate.on(q))
        assert all(isinstance(part, Fixed) for part in parts)
        np.testing.assert_allclose(np.abs(dense.unitary(parts, [q], {})) ** 2, 0.5, atol=1e-12)


def test_a_gate_of_ones_own_with_a_decomposition():
    class Mine(cirq.Gate):
        def _num_qubits_(self):
            return 2

        def _parameter_names_(self):
            return {"a"}

        def _is_parameterized_(self):
            return True

        def _decompose_(self, qubits):
            yield cirq.H(qubits[0])
            yield cirq.ZZ(*qubits) ** sympy.Symbol("a")

    first, second = lower_operation(Mine().on(*cirq.LineQubit.range(2)))
    assert isinstance(first, Fixed) and isinstance(second, Rotation)
    assert second.exponent == sympy.Symbol("a")


def test_a_mutable_gate_is_not_cached():
    q = cirq.LineQubit.range(2)
    gate = cirq.MutableDensePauliString("XI")
    before = lower_operation(gate.on(*q))
    gate[1] = "Z"
    assert (len(before), len(lower_operation(gate.on(*q)))) == (1, 2)


class _Opaque(cirq.Gate):
    """Neither a unitary nor a decomposition."""

    def __init__(self, qubits: int = 1, symbols: frozenset[str] = frozenset()) -> None:
        self._qubits, self._symbols = qubits, symbols

    def _num_qubits_(self):
        return self._qubits

    def _parameter_names_(self):
        return self._symbols

    def _is_parameterized_(self):
        return bool(self._symbols)

    def __str__(self):
        return "Opaque"


class _NotUnitary(_Opaque):
    def _unitary_(self):
        return np.array([[1, 0], [0, 2.0]])


class _Large(_Opaque):
    def _has_unitary_(self):
        return True


_Q = cirq.LineQubit(0)
_INNER = cirq.FrozenCircuit(cirq.X(_Q))


@pytest.mark.parametrize(
    ("operations", "words"),
    [
        ([cirq.measure(_Q, key="m")], ["measure", "measurement"]),
        ([cirq.depolarize(0.1)(_Q)], ["depolarize", "noise channel"]),
        ([cirq.reset(_Q)], ["reset", "noise channel or a reset"]),
        ([cirq.X(_Q).with_classical_controls("m")], ["X", "depends on a measurement"]),
        ([cirq.XPowGate(dimension=3).on(cirq.LineQid(0, 3))], ["qudit of dimension 3"]),
        ([cirq.X(_Q).controlled_by(cirq.LineQid(1, 3), control_values=[2])], ["qudit of dimension 3"]),
        ([_Opaque().on(_Q)], ["Opaque", "neither a unitary nor a decomposition"]),
        ([_Opaque(1, frozenset({"w"})).on(_Q)], ["Opaque", "symbols (w)", "_decompose_"]),
        ([_NotUnitary().on(_Q)], ["Opaque", "not unitary"]),
        ([_Large(11).on(*cirq.LineQubit.range(11))], ["Opaque", "11 qubits", "at most 10", "_decompose_"]),
        ([cirq.rx(float("nan"))(_Q)], ["finite", "nan"]),
        ([cirq.X(_Q) ** float("inf")], ["finite", "inf"]),
        ([cirq.CircuitOperation(_INNER, repetitions=sympy.Symbol("n"))], ["fixed number", "repeats n times"]),
        ([cirq.CircuitOperation(cirq.FrozenCircuit(cirq.measure(_Q, key="k")))], ["measurement"]),
        ([2 * cirq.X(_Q) * cirq.Z(cirq.LineQubit(1))], ["not unitary", "modulus 1"]),
    ],
)  # fmt: skip
def test_what_cannot_be_lowered_is_named_with_its_moment(operations, words):
    circuit = cirq.Circuit(cirq.Moment(cirq.H(cirq.LineQubit(40))), *[cirq.Moment(op) for op in operations])
    with pytest.raises(CircuitError) as caught:
        lower_circuit(circuit)
    for word in [*words, "moment 1"]:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
