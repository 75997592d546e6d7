"""Expressions that are not affine, compiled once together with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from qflock.errors import SymbolError

Floats: TypeAlias = NDArray[np.float64]
_Function: TypeAlias = Callable[..., Sequence[Any]]


class Nonlinear:
    """Rows of a table of expressions, as compiled NumPy functions.

    Args:
        rows: The row of each expression, and the expression.
        column: The column of each symbol among the values.

    Raises:
        SymbolError: If an expression or its derivative has no NumPy form.
    """

    def __init__(self, rows: Sequence[tuple[int, sympy.Expr]], column: Mapping[str, int]) -> None:
        self._rows = rows
        names = sorted({s.name for _, e in rows for s in e.free_symbols}, key=column.__getitem__)
        self._columns = [column[name] for name in names]
        # Real symbols let sympy differentiate Abs and the like; dummies cannot clash with Python's words.
        real = {name: sympy.Dummy(f"x{k}", real=True) for k, name in enumerate(names)}
        self._entries: list[tuple[int, int]] = []
        values, slopes = [], []
        for row, expression in rows:
            renamed = expression.xreplace({s: real[s.name] for s in expression.free_symbols})
            values.append(renamed)
            for name in sorted({s.name for s in expression.free_symbols}, key=column.__getitem__):
                self._entries.append((row, column[name]))
                slopes.append(_derivative(expression, renamed, real[name]))
        arguments = list(real.values())
        self._values = _compiled(arguments, values, [e for _, e in rows])
        self._slopes = _compiled(arguments, slopes, [e for _, e in rows])

    def add_values(self, x: Floats, result: Floats) -> None:
        """Adds the values at `x`, `(..., symbols)`, to `result`, `(..., expressions)`."""
        for (row, expression), value in zip(self._rows, self._call(self._values, x), strict=True):
            result[..., row] += _finite(value, f"Expression {expression}", x)

    def add_pullback(self, x: Floats, cotangent: Floats, result: Floats) -> None:
        """Adds `sum_i cotangent[..., i] de_i/dx_j` to `result`, `(..., symbols)`."""
        by_row = dict(self._rows)
        for (row, column), slope in zip(self._entries, self._call(self._slopes, x), strict=True):
            result[..., column] += cotangent[..., row] * _finite(slope, f"The derivative of {by_row[row]}", x)

    def _call(self, function: _Function, x: Floats) -> list[NDArray[np.generic]]:
        with np.errstate(all="ignore"):  # what is not finite becomes an error that names the expression
            return [np.asarray(value) for value in function(*[x[..., k] for k in self._columns])]


def _derivative(expression: sympy.Expr, renamed: sympy.Expr, symbol: sympy.Dummy) -> sympy.Expr:
    slope = sympy.diff(renamed, symbol)
    if slope.has(sympy.Derivative):
        raise SymbolError(f"Expression {expression} has no derivative in closed form; use other functions")
    return slope


def _compiled(
    arguments: Sequence[sympy.Dummy], values: Sequence[sympy.Expr], names: Sequence[sympy.Expr]
) -> _Function:
    function: _Function = sympy.lambdify(arguments, list(values), cse=True)
    try:
        with np.errstate(all="ignore"):
            function(*[np.full(1, 0.5) for _ in arguments])
    except (NameError, TypeError, AttributeError) as error:
        listed = ", ".join(map(str, names))
        raise SymbolError(f"One of the expressions {listed} has no numerical form: {error}") from None
    return function


def _finite(value: NDArray[np.generic], what: str, x: Floats) -> Floats:
    if not np.isfinite(value).all() or np.abs(value.imag).max(initial=0.0) > 1e-12:
        raise SymbolError(f"{what} must be a finite real number, but is not at the given values {x.tolist()}")
    return np.asarray(value.real, dtype=np.float64)
