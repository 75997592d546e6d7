"""Symbols: their order and values, and expressions of them with their derivatives."""

from __future__ import annotations

import cirq
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from qflock.circuits.affine import affine_terms
from qflock.circuits.symbols import Expressions, bind_values, natural_key, symbol_names
from qflock.errors import SymbolError

NAMES = ["a", "b", "c", "unused"]
A, B, C = sympy.symbols("a b c")
FORMS = [
    A, -B, 2 * A - B / 3 + 1, sympy.pi * C, A / sympy.pi, 2 * (A + 3 * (B - C)), sympy.Integer(4),
    sympy.pi / 3, A * B, A**2, sympy.sin(A) * B, sympy.exp(-(C**2)),
    abs(B) + A, (A + 1) * (B - 1), sympy.atan2(A, B),
    1 / (2 + C**2), sympy.sqrt(A**2 + 1), sympy.Max(A, B), A**3,
]  # fmt: skip


@st.composite
def _arrays(draw: st.DrawFn, width: int) -> np.ndarray:
    batch = draw(st.sampled_from([(), (1,), (5,), (0,)]))
    seed = draw(st.integers(0, 10**6))
    return np.random.default_rng(seed).uniform(0.1, 2.0, (*batch, width)) * [1, -1, 1, 1]


@settings(max_examples=60, deadline=None)
@given(picks=st.lists(st.sampled_from(FORMS), max_size=8), x=_arrays(len(NAMES)), seed=st.integers(0, 99))
def test_values_and_pullback_are_those_of_sympy(picks, x, seed):
    expressions = Expressions(picks, NAMES)
    cotangent = np.random.default_rng(seed).normal(size=(*x.shape[:-1], len(picks)))
    values, gradient = expressions.values(x), expressions.pullback(x, cotangent)
    assert values.shape == cotangent.shape and gradient.shape == x.shape
    for index in np.ndindex(*x.shape[:-1]):
        point = dict(zip((A, B, C), x[index], strict=False))
        expected = [float(e.subs(point)) for e in picks]
        np.testing.assert_allclose(values[index], expected, rtol=1e-12, atol=1e-12)
        real = {s: sympy.Symbol(s.name, real=True) for s in (A, B, C)}
        slopes = [
            [
                float(e.subs(real).diff(real[s]).subs({real[k]: v for k, v in point.items()}))
                for s in (A, B, C)
            ]
            for e in picks
        ]
        np.testing.assert_allclose(
            gradient[index][:3], cotangent[index] @ np.reshape(slopes, (-1, 3)), rtol=1e-9, atol=1e-12
        )
        assert gradient[index][3] == 0.0


def test_sums_of_numbers_times_symbols_need_no_compilation():
    assert affine_terms(2 * (A + 3 * (B - C)) + 1) == (1.0, {"a": 2.0, "b": 6.0, "c": -6.0})
    assert affine_terms(A * B) is None and affine_terms(sympy.sin(A)) is None


def test_values_shared_by_a_batch_of_cotangents():
    expressions = Expressions([A, A * B], ["a", "b"])
    x, cotangent = np.array([2.0, 3.0]), np.ones((4, 2))
    np.testing.assert_allclose(expressions.pullback(x, cotangent), [[4.0, 2.0]] * 4)


def test_an_expression_with_an_unknown_symbol_is_refused():
    with pytest.raises(SymbolError, match=r"'thetq'.*did you mean 'theta'"):
        Expressions([sympy.Symbol("thetq") * 2], ["theta", "x"])


@pytest.mark.parametrize(
    ("expression", "value", "words"),
    [
        (sympy.log(A), -1.0, ["log(a)", "-1.0"]),
        (1 / A, 0.0, ["1/a", "0.0"]),
        (sympy.acos(A), 2.0, ["acos(a)", "2.0"]),
    ],
)
def test_a_value_that_is_not_finite_is_refused(expression, value, words):
    expressions = Expressions([expression], ["a"])
    with pytest.raises(SymbolError) as caught:
        expressions.values(np.array([value]))
    assert all(word in str(caught.value) for word in words)


def test_a_derivative_that_is_not_finite_is_refused():
    expressions = Expressions([sympy.sqrt(A)], ["a"])
    assert expressions.values(np.array([0.0])) == [0.0]
    with pytest.raises(SymbolError, match=r"derivative of sqrt\(a\)"):
        expressions.pullback(np.array([0.0]), np.array([1.0]))


def test_an_expression_without_a_numerical_form_is_refused():
    for expression in (sympy.Function("mine")(A), sympy.Function("mine")(A) * B):
        with pytest.raises(SymbolError, match="mine"):
            Expressions([expression], ["a", "b"])


def test_words_of_python_may_be_symbols():
    names = ["lambda", "in", "x y", "0", "é"]
    expressions = Expressions([sympy.Symbol(n) ** 2 for n in names], names)
    assert expressions.values(np.arange(5.0)).tolist() == [0, 1, 4, 9, 16]


def test_names_come_in_natural_order():
    q = cirq.LineQubit(0)
    names = ["t10", "t2", "b", "a10b2", "a10b10", "a9", "x", "T2", "t02"]
    circuits = [cirq.Circuit(cirq.rx(sympy.Symbol(n))(q)) for n in names]
    expected = ("T2", "a9", "a10b2", "a10b10", "b", "t02", "t2", "t10", "x")
    assert symbol_names(circuits) == symbol_names(sum(circuits, cirq.Circuit())) == expected
    assert symbol_names(cirq.Circuit()) == ()


@given(st.lists(st.text(min_size=1), unique=True))
def test_every_list_of_names_has_one_order(names):
    assert sorted(names, key=natural_key) == sorted(reversed(names), key=natural_key)


def test_values_are_put_in_order_and_broadcast():
    assert bind_values(["a", "b"], {"b": 2, "a": 1}).tolist() == [1.0, 2.0]
    assert bind_values(["a", "b"], {sympy.Symbol("b"): [2, 3], sympy.Symbol("a"): 1}).tolist() == [
        [1, 2],
        [1, 3],
    ]
    assert bind_values([], {}).shape == (0,)


@pytest.mark.parametrize(
    ("names", "values", "words"),
    [
        (["theta"], {"thetta": 1.0}, ["'theta' has no value", "did you mean 'thetta'"]),
        (["a", "b"], {"a": 1.0}, ["'b' has no value", "values are given for a"]),
        (["a"], {"a": 1.0, "zeta": 2.0}, ["'zeta' belongs to no symbol", "the symbols are a"]),
        ([], {"a": 1.0}, ["'a' belongs to no symbol", "none"]),
        (["a"], {"a": float("nan")}, ["'a'", "finite", "nan"]),
        (["a"], {"a": [1.0, float("inf")]}, ["'a'", "finite", "inf"]),
        (["a"], {"a": [[1.0]]}, ["'a'", "(1, 1)"]),
        (["a"], {"a": "one"}, ["'a'", "'one'"]),
        (["a"], {"a": 1j}, ["'a'", "1j"]),
        (["a", "b"], {"a": [1, 2], "b": [1, 2, 3]}, ["one length", "a: 2", "b: 3"]),
    ],
)
def test_values_that_do_not_fit_are_named(names, values, words):
    with pytest.raises(SymbolError) as caught:
        bind_values(names, values)
    for word in words:
        assert word in str(caught.value)
