"""Sympy expressions as JSON trees, of known functions only: reading one evaluates no text."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import cirq
import sympy
from cirq.protocols.json_serialization import CirqEncoder

from qflock.circuits.readable import readable
from qflock.errors import TensorFormatError

_FUNCTIONS: dict[str, Any] = {
    "+": sympy.Add,
    "*": sympy.Mul,
    "**": sympy.Pow,
    **{
        f.__name__: f
        for f in (
            sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan, sympy.atan2,
            sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.acosh, sympy.atanh,
            sympy.exp, sympy.log, sympy.Abs, sympy.sign, sympy.Min, sympy.Max, sympy.erf, sympy.sinc,
            sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.re, sympy.im, sympy.arg, sympy.conjugate,
        )
    },
}  # fmt: skip
_NAMES = {function: name for name, function in _FUNCTIONS.items()}
_CONSTANTS: dict[str, sympy.Expr] = {
    "pi": sympy.pi,
    "e": sympy.E,
    "i": sympy.I,
    "gamma": sympy.EulerGamma,
    "golden": sympy.GoldenRatio,
}
_CONSTANT_NAMES = {constant: name for name, constant in _CONSTANTS.items()}
_DOUBLE = 53
_EXPRESSION = "qflock.Expression"


def tree_of(expression: sympy.Basic) -> Any:
    """The JSON tree of an expression: a symbol is its name, a number a number, all else a list.

    Raises:
        TensorFormatError: If the expression holds something that has no form here.
    """
    if isinstance(expression, sympy.Symbol):
        return expression.name
    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Float):
        if expression._prec == _DOUBLE:
            return float(expression)
        return ["float", str(expression), expression._prec]
    if isinstance(expression, sympy.Rational):
        return ["/", expression.p, expression.q]
    if expression in _CONSTANT_NAMES:
        return [_CONSTANT_NAMES[expression]]
    if expression.func in _NAMES:
        return [_NAMES[expression.func], *[tree_of(part) for part in expression.args]]
    raise TensorFormatError(
        f"Expression {expression} cannot be serialised: it holds {expression.func.__name__}, but may hold "
        f"symbols, numbers, constants and {', '.join(_FUNCTIONS)}"
    )


def expression_of(tree: Any) -> sympy.Expr:
    """The expression of a JSON tree."""
    if isinstance(tree, str):
        return sympy.Symbol(tree)
    if isinstance(tree, int):
        return sympy.Integer(tree)
    if isinstance(tree, float):
        return sympy.Float(tree)
    head, *parts = tree
    if head == "/":  # sympy would evaluate any text in place of a number
        return sympy.Rational(*map(operator.index, parts))
    if head == "float":
        digits, precision = parts
        return sympy.Float(str(digits), precision=operator.index(precision))
    if not parts:
        return _CONSTANTS[head]
    return _FUNCTIONS[head](*[expression_of(part) for part in parts])


class _Encoder(CirqEncoder):
    """Cirq's JSON, with expressions as trees: Cirq itself knows sums, products and powers only."""

    def default(self, o: Any) -> Any:
        if isinstance(o, sympy.Expr):
            return {"cirq_type": _EXPRESSION, "tree": json.dumps(tree_of(o))}
        return super().default(o)


def _resolve(cirq_type: str) -> Callable[[str], sympy.Expr] | None:
    return _read_expression if cirq_type == _EXPRESSION else None


def _read_expression(tree: str) -> sympy.Expr:
    return expression_of(json.loads(tree))


def cirq_text(value: Any) -> str:
    """A Cirq object as JSON text.

    Raises:
        TensorFormatError: If Cirq has no JSON form for it, or one that gives something else back.
    """
    text, back = _text_and_back(value)
    if back != value:
        raise TensorFormatError(f"{value!r} cannot be serialised: Cirq's JSON form gives {back!r} back")
    return text


def _text_and_back(value: Any) -> tuple[str, Any]:
    try:
        text = cirq.to_json(value, indent=None, separators=(",", ":"), cls=_Encoder)
        return text, cirq_value(text)
    except (TypeError, ValueError) as error:
        raise TensorFormatError(f"{value!r} cannot be serialised: {error}".replace("\n", " ")) from None


def cirq_value(text: str) -> Any:
    """The Cirq object of JSON text.

    Raises:
        TensorFormatError: If it holds something whose reading might evaluate text.
    """
    return cirq.read_json(json_text=text, resolvers=[_resolve, readable])


def tags_text(tags: tuple[Any, ...]) -> str:
    """Tags of an operation or moment as JSON text.

    Raises:
        TensorFormatError: If a tag has no JSON form.
    """
    text, back = _text_and_back(tags)
    if _with_tuples(back) != tags:
        raise TensorFormatError(
            f"The tags {tags!r} cannot be serialised; remove them, for instance with `untagged`"
        )
    return text


def read_tags(text: str) -> tuple[Any, ...]:
    """The tags of JSON text."""
    tags: tuple[Any, ...] = _with_tuples(cirq_value(text))
    return tags


def _with_tuples(value: Any) -> Any:
    """JSON has no tuples, and tags can be no lists."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
