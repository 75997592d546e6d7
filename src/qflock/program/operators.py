"""Operators: what a gate does, apart from where it acts and what its angle is.

Equal operators are one object, so that a program of hundreds of gates holds a handful of matrices, and comparing
two programs compares small integers.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_numbers = itertools.count()


@dataclass(frozen=True, eq=False, slots=True)
class Operator:
    """A fixed unitary, or the rotation `sum_j exp(i pi half_turns[j] x) projectors[j]` with an angle x from outside.

    Args:
        matrices: The unitary `(1, d, d)`, or the projectors `(k, d, d)`, complex128.
        half_turns: `(k,)` float64, or None for a fixed unitary.
        diagonal: For each qubit, first the most significant: does the operator commute with Z on it, whatever x is?
        real: Are all matrix elements real, whatever x is?
        number: Distinct for distinct operators of this process.
    """

    matrices: NDArray[np.complex128]
    half_turns: NDArray[np.float64] | None
    diagonal: tuple[bool, ...]
    real: bool
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def qubit_count(self) -> int:
        """How many qubits the operator acts on."""
        return len(self.diagonal)

    @property
    def is_fixed(self) -> bool:
        """Is it a fixed unitary, without an angle?"""
        return self.half_turns is None

    def unitary(self, angle: float = 0.0) -> NDArray[np.complex128]:
        """The matrix `(d, d)` at an angle, which a fixed operator ignores."""
        weights = np.ones(1) if self.half_turns is None else np.exp(1j * np.pi * self.half_turns * angle)
        matrix: NDArray[np.complex128] = np.tensordot(weights, self.matrices, axes=1)
        return matrix


def fixed(matrix: NDArray[np.complex128]) -> Operator:
    """The operator of a fixed unitary matrix `(d, d)`."""
    matrix = np.ascontiguousarray(matrix, dtype=np.complex128)
    return _fixed(matrix.tobytes(), matrix.shape[0])


def rotation(half_turns: NDArray[np.float64], projectors: NDArray[np.complex128]) -> Operator:
    """The operator of a rotation with eigenvalues `exp(i pi half_turns[j] x)`, `(k,)`, and projectors `(k, d, d)`."""
    half_turns = np.ascontiguousarray(half_turns, dtype=np.float64)
    projectors = np.ascontiguousarray(projectors, dtype=np.complex128)
    return _rotation(half_turns.tobytes(), projectors.tobytes(), projectors.shape[1])


@functools.lru_cache(maxsize=1 << 16)
def _fixed(matrix: bytes, dim: int) -> Operator:
    matrices = np.frombuffer(matrix, dtype=np.complex128).reshape(1, dim, dim)
    return Operator(matrices, None, _diagonal_qubits(matrices), not matrices.imag.any())


@functools.lru_cache(maxsize=1 << 16)
def _rotation(half_turns: bytes, projectors: bytes, dim: int) -> Operator:
    turns = np.frombuffer(half_turns, dtype=np.float64)
    matrices = np.frombuffer(projectors, dtype=np.complex128).reshape(-1, dim, dim)
    generator = np.tensordot(turns, matrices, axes=1)
    # exp(i pi x H) is real for every x exactly when the Hermitian H is imaginary.
    real = bool(np.abs(generator.real).max(initial=0.0) < 1e-15)
    return Operator(matrices, turns, _diagonal_qubits(matrices), real)


def _diagonal_qubits(matrices: NDArray[np.complex128]) -> tuple[bool, ...]:
    """A qubit is diagonal when no element leads from one of its values to the other."""
    count = matrices.shape[1].bit_length() - 1
    used = np.abs(matrices).max(axis=0) > 1e-15
    rows, columns = np.nonzero(used)
    flips = int(np.bitwise_or.reduce(rows ^ columns, initial=0))
    return tuple(not flips >> (count - 1 - k) & 1 for k in range(count))
