"""Symbols and the expressions that gates hold: values and derivatives in float64, for whole batches."""

from __future__ import annotations

import difflib
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import cirq
import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from qflock.circuits.affine import Affine, affine_terms
from qflock.circuits.nonlinear import Nonlinear
from qflock.errors import SymbolError

Floats: TypeAlias = NDArray[np.float64]


def symbol_names(circuits: cirq.AbstractCircuit | Iterable[cirq.AbstractCircuit]) -> tuple[str, ...]:
    """The symbols of a circuit, or of several, in natural order: `t2` before `t10`.

    Example:
        >>> import cirq, sympy
        >>> q = cirq.LineQubit(0)
        >>> symbol_names(cirq.Circuit(cirq.rx(sympy.Symbol(name))(q) for name in ("t10", "b", "t2")))
        ('b', 't2', 't10')
    """
    if isinstance(circuits, cirq.AbstractCircuit):
        circuits = [circuits]
    names = {name for circuit in circuits for name in cirq.parameter_names(circuit)}
    return tuple(sorted(names, key=natural_key))


def natural_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sorts digits inside names by their value, and is different for different names."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple((0, int(p), "") if p[0] in string.digits else (1, 0, p) for p in pieces), name


def bind_values(
    names: Sequence[str],
    values: Mapping[str, ArrayLike] | Mapping[sympy.Symbol, ArrayLike] | cirq.ParamResolver,
) -> Floats:
    """Values in the order of the names.

    Args:
        names: Symbols, in the order that is wanted.
        values: A number, or an array `(batch,)`, for each symbol; numbers are repeated along the batch.

    Returns:
        `(symbols,)`, or `(batch, symbols)` when any value is an array, float64.

    Raises:
        SymbolError: If a symbol has no value, a value no symbol, or a value is not finite or misshapen.

    Example:
        >>> bind_values(["a", "b"], {"b": [1.0, 2.0], "a": 5})
        array([[5., 1.],
               [5., 2.]])
    """
    if isinstance(values, cirq.ParamResolver):
        values = {str(name): value for name, value in values.param_dict.items()}
    if not isinstance(values, Mapping):
        raise SymbolError(f"Values must be a dictionary {{symbol: value}}, but are {values!r}")
    given = {str(name): _finite_array(str(name), value) for name, value in values.items()}
    for name in names:
        if name not in given:
            raise SymbolError(f"Symbol {name!r} has no value; {_listed('values are given for', given, name)}")
    for name in given:
        if name not in names:
            raise SymbolError(
                f"Value {name!r} belongs to no symbol; {_listed('the symbols are', names, name)}"
            )
    lengths = {name: len(array) for name, array in given.items() if array.ndim}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise SymbolError(f"Arrays of values must have one length, but have {listed}")
    shape = (next(iter(lengths.values())),) if lengths else ()
    columns = [np.broadcast_to(given[name], shape) for name in names]
    return np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))


def _finite_array(name: str, value: ArrayLike) -> Floats:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SymbolError(
            f"The value of symbol {name!r} must be a number or an array, but is {value!r}"
        ) from None
    if array.ndim > 1:
        raise SymbolError(
            f"The value of symbol {name!r} must be a number or have the shape (batch,), but has {array.shape}"
        )
    if not np.isfinite(array).all():
        bad = np.atleast_1d(array)[~np.isfinite(np.atleast_1d(array))][0]
        raise SymbolError(f"The value of symbol {name!r} must be finite, but is {bad}")
    return array


def _listed(text: str, names: Iterable[str], wanted: str) -> str:
    known = list(names)
    close = difflib.get_close_matches(wanted, known, n=3)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"{text} {', '.join(known) or 'none'}"


class Expressions:
    r"""Many expressions $e_i(x)$ of the same symbols, evaluated and differentiated together.

    Args:
        expressions: Sympy expressions, real for real symbols.
        names: The symbols, in the order of the values; there may be more than the expressions hold.

    Raises:
        SymbolError: If an expression holds a symbol that is not named, or cannot be evaluated or
            differentiated.

    Example:
        >>> import sympy
        >>> a, b = sympy.symbols("a b")
        >>> both = Expressions([2 * a - b, a * sympy.sin(b)], ["a", "b"])
        >>> both.values(np.array([3.0, 0.0]))
        array([6., 0.])
        >>> both.pullback(np.array([3.0, 0.0]), np.array([1.0, 1.0]))
        array([2., 2.])
    """

    def __init__(self, expressions: Sequence[sympy.Expr], names: Sequence[str]) -> None:
        column = {name: k for k, name in enumerate(names)}
        self._shape = (len(expressions), len(names))
        affine: list[tuple[int, float, dict[int, float]]] = []
        nonlinear: list[tuple[int, sympy.Expr]] = []
        for row, expression in enumerate(expressions):
            _check_named(expression, column)
            found = affine_terms(expression)
            if found is None:
                nonlinear.append((row, expression))
            else:
                constant, slopes = found
                affine.append((row, constant, {column[name]: slope for name, slope in slopes.items()}))
        self._affine = Affine(affine, self._shape)
        self._nonlinear = Nonlinear(nonlinear, column) if nonlinear else None

    def values(self, x: Floats) -> Floats:
        """The expressions' values.

        Args:
            x: `(symbols,)` or `(batch, symbols)` float64.

        Returns:
            `(expressions,)` or `(batch, expressions)` float64.

        Raises:
            SymbolError: If an expression is not finite and real there, such as `log(a)` at `a = -1`.
        """
        result = self._affine.values(x)
        if self._nonlinear is not None:
            self._nonlinear.add_values(x, result)
        return result

    def pullback(self, x: Floats, cotangent: Floats) -> Floats:
        r"""The chain rule, $\sum_i c_i\, \partial e_i / \partial x_j$.

        Args:
            x: `(symbols,)` or `(batch, symbols)` float64.
            cotangent: The derivative by each expression, `(expressions,)` or `(batch, expressions)`.

        Returns:
            The derivative by each symbol, `(symbols,)` or `(batch, symbols)` float64.

        Raises:
            SymbolError: If a derivative is not finite there, such as that of `sqrt(a)` at `a = 0`.
        """
        result = self._affine.pullback(cotangent)
        if self._nonlinear is not None:
            result = np.broadcast_to(
                result, (*np.broadcast_shapes(x.shape[:-1], result.shape[:-1]), self._shape[1])
            )
            result = result.copy()
            self._nonlinear.add_pullback(x, cotangent, result)
        return result


def _check_named(expression: sympy.Expr, column: Mapping[str, int]) -> None:
    for symbol in sorted(expression.free_symbols, key=str):
        if str(symbol) not in column:
            raise SymbolError(
                f"Symbol {str(symbol)!r} of expression {expression} has no value; "
                f"{_listed('the symbols are', column, str(symbol))}"
            )
