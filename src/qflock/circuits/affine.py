"""Affine expressions: sums of numbers times symbols. Nearly all angles are, so they need no compiled code."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Terms: TypeAlias = tuple[float, dict[str, float]]


def affine_terms(expression: sympy.Expr) -> Terms | None:
    """The constant and the slope of each symbol, or None if the expression is not plainly affine."""
    if isinstance(expression, sympy.Symbol):
        return 0.0, {expression.name: 1.0}
    if not expression.free_symbols:
        number = _number(expression)
        return None if number is None else (number, {})
    if isinstance(expression, sympy.Add):
        return _sum([affine_terms(term) for term in expression.args])
    if isinstance(expression, sympy.Mul):
        numeric, symbolic = expression.as_independent(*expression.free_symbols, as_Add=False)
        factor, terms = _number(numeric), None if symbolic == expression else affine_terms(symbolic)
        if factor is None or terms is None:
            return None
        return factor * terms[0], {name: factor * slope for name, slope in terms[1].items()}
    return None


def _sum(parts: Sequence[Terms | None]) -> Terms | None:
    constant, slopes = 0.0, dict[str, float]()
    for part in parts:
        if part is None:
            return None
        constant += part[0]
        for name, slope in part[1].items():
            slopes[name] = slopes.get(name, 0.0) + slope
    return constant, slopes


@functools.lru_cache(maxsize=1 << 12)
def _number(expression: sympy.Expr) -> float | None:
    value = complex(expression)
    return value.real if value.imag == 0 and np.isfinite(value.real) else None


class Affine:
    """Affine rows of a table of expressions, as a sparse matrix; the other rows stay zero.

    Args:
        rows: For each affine expression its row, its constant and its slope by column.
        shape: (expressions, symbols).
    """

    def __init__(self, rows: Sequence[tuple[int, float, dict[int, float]]], shape: tuple[int, int]) -> None:
        self._constants = np.zeros(shape[0])
        for row, constant, _ in rows:
            self._constants[row] = constant
        entries = [(row, column, slope) for row, _, slopes in rows for column, slope in slopes.items()]
        self._forward = _Gather([(row, column, slope) for row, column, slope in entries], shape[0])
        self._backward = _Gather([(column, row, slope) for row, column, slope in entries], shape[1])

    def values(self, x: Floats) -> Floats:
        """`(..., expressions)` for symbols `(..., symbols)`."""
        return self._forward(x) + self._constants

    def pullback(self, cotangent: Floats) -> Floats:
        """`(..., symbols)` for a cotangent `(..., expressions)`."""
        return self._backward(cotangent)


class _Gather:
    """A sparse matrix times the last axis of an array: gather, scale, add up runs of equal target."""

    def __init__(self, entries: Sequence[tuple[int, int, float]], size: int) -> None:
        table = np.array(sorted(entries), dtype=np.float64).reshape(-1, 3)
        targets = table[:, 0].astype(np.intp)
        self._sources = table[:, 1].astype(np.intp)
        self._slopes = np.ascontiguousarray(table[:, 2])
        self._targets, self._starts = np.unique(targets, return_index=True)
        self._size = size

    def __call__(self, x: Floats) -> Floats:
        products = x[..., self._sources] * self._slopes
        if len(self._targets) < len(self._sources):
            products = np.add.reduceat(products, self._starts, axis=-1)
        if len(self._targets) == self._size:
            return products
        result = np.zeros((*x.shape[:-1], self._size))
        result[..., self._targets] = products
        return result
