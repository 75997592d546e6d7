"""A small dense evaluation of parts, written apart from the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cirq
import numpy as np

from qflock.circuits.gates import Fixed, Part, Rotation


def matrix_of(part: Part, values: Mapping[str, float]) -> np.ndarray:
    """The matrix of a part, by the definition of a rotation."""
    if isinstance(part, Fixed):
        return part.matrix
    x = _number(part.exponent, values)
    return sum(np.exp(1j * np.pi * h * x) * p for h, p in zip(part.half_turns, part.projectors, strict=True))


def slope_of(part: Rotation, values: Mapping[str, float], name: str) -> np.ndarray:
    """The derivative of a rotation's matrix by a symbol."""
    x = _number(part.exponent, values)
    inner = sum(
        1j * np.pi * h * np.exp(1j * np.pi * h * x) * p
        for h, p in zip(part.half_turns, part.projectors, strict=True)
    )
    symbol = next((s for s in part.exponent.free_symbols if s.name == name), None)
    return inner * (0.0 if symbol is None else _number(part.exponent.diff(symbol), values))


def apply(
    matrix: np.ndarray, targets: Sequence[cirq.Qid], qubits: Sequence[cirq.Qid], state: np.ndarray
) -> np.ndarray:
    """Applies a matrix to some qubits of a state `(2**n, ...)` whose first qubit is the most significant."""
    n, k = len(qubits), len(targets)
    axes = [list(qubits).index(q) for q in targets]
    tensor = state.reshape((2,) * n + (-1,))
    out = np.tensordot(matrix.reshape((2,) * (2 * k)), tensor, axes=(range(k, 2 * k), axes))
    return np.moveaxis(out, range(k), axes).reshape(state.shape)


def unitary(parts: Sequence[Part], qubits: Sequence[cirq.Qid], values: Mapping[str, float]) -> np.ndarray:
    """The product of parts."""
    result = np.eye(2 ** len(qubits), dtype=complex)
    for part in parts:
        result = apply(matrix_of(part, values), part.qubits, qubits, result)
    return result


def derivative(
    parts: Sequence[Part], qubits: Sequence[cirq.Qid], values: Mapping[str, float], name: str
) -> np.ndarray:
    """The derivative of the product by a symbol, by the product rule."""
    total = np.zeros((2 ** len(qubits),) * 2, dtype=complex)
    for turned in parts:
        if isinstance(turned, Fixed):
            continue
        result = np.eye(2 ** len(qubits), dtype=complex)
        for part in parts:
            matrix = slope_of(turned, values, name) if part is turned else matrix_of(part, values)
            result = apply(matrix, part.qubits, qubits, result)
        total += result
    return total


def _number(expression: object, values: Mapping[str, float]) -> float:
    return float(expression.subs(values).evalf())
