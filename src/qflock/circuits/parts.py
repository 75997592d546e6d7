"""The two things that a gate can become: a fixed unitary, or a rotation by an angle from outside."""

from __future__ import annotations

import cmath
import math
import numbers
from dataclasses import dataclass
from typing import TypeAlias

import cirq
import numpy as np
import sympy
from numpy.typing import NDArray

from qflock.errors import CircuitError

Matrix: TypeAlias = NDArray[np.complex128]
Qubits: TypeAlias = tuple[cirq.Qid, ...]
Parameter: TypeAlias = float | sympy.Expr


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A unitary without an angle.

    Args:
        qubits: The first is the most significant bit of the matrix index.
        matrix: `(d, d)` complex128 with `d = 2**len(qubits)`.
    """

    qubits: Qubits
    matrix: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    r"""A unitary $U(x) = \sum_j e^{i\pi h_j x} P_j$ with an angle $x$.

    Args:
        qubits: The first is the most significant bit of the matrix index.
        half_turns: $h_j$, `(k,)` float64.
        projectors: Orthogonal projectors $P_j$ that add up to the identity, `(k, d, d)` complex128.
        exponent: The angle $x$ as an expression of symbols.
    """

    qubits: Qubits
    half_turns: NDArray[np.float64]
    projectors: Matrix
    exponent: sympy.Expr

    def unitary(self, x: float) -> Matrix:
        """The matrix `(d, d)` at angle `x`."""
        return unitary_of(Spectrum(self.half_turns, self.projectors), x)


Part: TypeAlias = Fixed | Rotation


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenvalues `exp(i pi half_turns[j] x)`, `(k,)`, and their projectors, `(k, d, d)`."""

    half_turns: NDArray[np.float64]
    projectors: Matrix


_QUARTERS = (1 + 0j, 1j, -1 + 0j, -1j)


def phase(turns: float) -> complex:
    """`exp(i pi turns)`, exact at quarter circles and odd in the sine, so that real gates stay real."""
    near = math.remainder(turns, 2.0)
    quarters = 2.0 * near
    if quarters == int(quarters):
        return _QUARTERS[int(quarters) % 4]
    return complex(math.cos(math.pi * near), math.sin(math.pi * near))


def unitary_of(spectrum: Spectrum, x: float) -> Matrix:
    """The matrix `(d, d)` of a spectrum at angle `x`."""
    k, d, _ = spectrum.projectors.shape
    phases = np.array([phase(h * x) for h in spectrum.half_turns.tolist()])
    matrix: Matrix = (phases @ spectrum.projectors.reshape(k, d * d)).reshape(d, d)
    return matrix


def spectral(qubits: Qubits, spectrum: Spectrum, exponent: object) -> Part:
    """A rotation, or the fixed unitary that it is when its exponent holds no symbol."""
    x = parameter(exponent)
    if isinstance(x, float):
        return fixed(qubits, unitary_of(spectrum, x))
    return Rotation(qubits, spectrum.half_turns, spectrum.projectors, x)


def fixed(qubits: Qubits, matrix: Matrix) -> Fixed:
    """A fixed unitary whose matrix nobody can change afterwards."""
    matrix.setflags(write=False)
    return Fixed(qubits, matrix)


def tidy(matrix: NDArray[np.generic]) -> Matrix:
    """Sets rounding errors of zero to zero, so that real and diagonal matrices are recognised as such."""
    result = np.array(matrix, dtype=np.complex128)
    for half in (result.real, result.imag):
        half[np.abs(half) < 1e-15] = 0.0
    result.setflags(write=False)
    return result


def parameter(value: object) -> Parameter:
    """A gate's parameter as a finite number, or as an expression that holds symbols.

    Raises:
        CircuitError: If the value is complex, infinite or not a number.
    """
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, sympy.Expr):
        if value.free_symbols:
            return value
        value = complex(value)
    if isinstance(value, numbers.Complex):
        number = complex(value)
        if cmath.isfinite(number) and number.imag == 0:
            return number.real
    raise CircuitError(f"A gate's parameter must be a finite real number or an expression, but is {value}")


def half_turns(radians: object) -> Parameter:
    """An angle in radians, in half turns."""
    angle = parameter(radians)
    return angle / math.pi if isinstance(angle, float) else angle / sympy.pi
