"""Symbols: names in a circuit, and the expressions that turn their values into angles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import cirq
import numpy as np
import sympy
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def symbol_names(circuit: cirq.AbstractCircuit) -> tuple[str, ...]:
    """The names of a circuit's symbols in natural order, in which `w2` comes before `w10`.

    Example:
        >>> a, b = sympy.symbols("w10 w2")
        >>> q = cirq.LineQubit(0)
        >>> symbol_names(cirq.Circuit(cirq.rx(a)(q), cirq.rz(b)(q)))
        ('w2', 'w10')
    """
    return tuple(sorted(cirq.parameter_names(circuit), key=_natural))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Runs of digits compare as numbers, everything else as text."""
    return [(0, int(run), "") if run.isdigit() else (1, 0, run) for run in re.split(r"(\d+)", name) if run]


class Expressions:
    """Expressions of named symbols, evaluated and differentiated on arrays of symbol values.

    Args:
        expressions: Real expressions.
        names: The symbols, in the order of the values.

    Example:
        >>> a, b = sympy.symbols("a b")
        >>> angles = Expressions([2 * a + 1, a * b], ["a", "b"])
        >>> angles.values(np.array([3.0, 4.0])).tolist()
        [7.0, 12.0]
        >>> angles.pullback(np.array([3.0, 4.0]), np.array([1.0, 1.0])).tolist()
        [6.0, 3.0]
    """

    def __init__(self, expressions: Sequence[sympy.Expr], names: Sequence[str]) -> None:
        column = {name: k for k, name in enumerate(names)}
        self._scale = np.zeros((len(expressions), len(names)))
        self._offset = np.zeros(len(expressions))
        self._nonlinear: list[_Nonlinear] = []
        for row, expression in enumerate(expressions):
            affine = _affine(expression)
            if affine is None:
                self._nonlinear.append(_Nonlinear(row, expression, column))
                continue
            slopes, self._offset[row] = affine
            for name, slope in slopes.items():
                self._scale[row, column[name]] = slope

    def values(self, symbols: Floats) -> Floats:
        """The expressions' values.

        Args:
            symbols: `(names,)` or `(batch, names)` float64.

        Returns:
            `(expressions,)` or `(batch, expressions)` float64.
        """
        result = symbols @ self._scale.T + self._offset
        for item in self._nonlinear:
            result[..., item.row] = item.value(symbols)
        return result

    def pullback(self, symbols: Floats, cotangent: Floats) -> Floats:
        """The chain rule: derivatives by the expressions become derivatives by the symbols.

        Args:
            symbols: `(names,)` or `(batch, names)` float64.
            cotangent: `(expressions,)` or `(batch, expressions)` float64.

        Returns:
            `sum_e cotangent_e d expression_e / d symbol`, of the shape of `symbols`.
        """
        result = cotangent @ self._scale
        for item in self._nonlinear:
            for column, derivative in item.derivatives(symbols):
                result[..., column] += cotangent[..., item.row] * derivative
        return result


class _Nonlinear:
    """One expression that is not affine, with its partial derivatives, compiled to NumPy."""

    def __init__(self, row: int, expression: sympy.Expr, column: dict[str, int]) -> None:
        self.row = row
        symbols = sorted(expression.free_symbols, key=str)
        self._columns = [column[str(s)] for s in symbols]
        self._value = _compiled(symbols, expression)
        self._derivatives = [_compiled(symbols, sympy.diff(expression, s)) for s in symbols]

    def value(self, symbols: Floats) -> Any:
        return self._value(*[symbols[..., c] for c in self._columns])

    def derivatives(self, symbols: Floats) -> list[tuple[int, Any]]:
        arguments = [symbols[..., c] for c in self._columns]
        return [(c, d(*arguments)) for c, d in zip(self._columns, self._derivatives, strict=True)]


def _compiled(symbols: Sequence[sympy.Symbol], expression: sympy.Expr) -> Callable[..., Any]:
    function: Callable[..., Any] = sympy.lambdify(symbols, expression, modules="numpy")
    return function


def _affine(expression: sympy.Expr) -> tuple[dict[str, float], float] | None:
    """Slopes by symbol name and the constant of an affine expression; None for any other."""
    slopes: dict[str, float] = {}
    offset = 0.0
    for term in sympy.Add.make_args(sympy.expand(expression)):
        symbols = term.free_symbols
        if not symbols:
            offset += float(term)
            continue
        if len(symbols) > 1:
            return None
        symbol = next(iter(symbols))
        slope = term / symbol
        if slope.free_symbols:
            return None
        slopes[str(symbol)] = slopes.get(str(symbol), 0.0) + float(slope)
    return slopes, offset
