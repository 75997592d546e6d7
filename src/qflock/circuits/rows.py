"""The gate table: one row per gate family, from a gate on qubits to its parts.

Gates without a row are lowered by their unitary or their decomposition (see `gates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import cirq
import numpy as np
import sympy

from qflock.circuits.parts import (
    Matrix,
    Part,
    Qubits,
    Spectrum,
    fixed,
    half_turns,
    parameter,
    phase,
    spectral,
    tidy,
)
from qflock.errors import CircuitError

Row: TypeAlias = Callable[[Any, Qubits], "Iterator[Part | cirq.Operation] | None"]
"""What a row holds: a gate on qubits becomes parts, or operations that have parts themselves, first applied
first; None if the row does not fit the gate."""

DENSE_QUBITS = 4
"""Up to this many qubits a gate becomes one matrix; above, it is split if that can be done."""

_PAULI = {0: np.eye(2), 1: cirq.unitary(cirq.X), 2: cirq.unitary(cirq.Y), 3: cirq.unitary(cirq.Z)}


def diagonal_spectrum(*half_turns_of_states: float) -> Spectrum:
    """A spectrum that is diagonal in the computational basis, from the half turns of each basis state."""
    states = np.array(half_turns_of_states)
    values = np.unique(states)
    projectors = np.stack([np.diag(states == value) for value in values]).astype(np.complex128)
    return Spectrum(values, projectors)


Z_SPECTRUM = diagonal_spectrum(0.0, 1.0)
_PHASE_SPECTRUM = diagonal_spectrum(1.0)
_spectra: dict[tuple[type, float], Spectrum] = {}


def eigen_spectrum(gate: cirq.EigenGate) -> Spectrum:
    """The spectrum of a gate's own eigenvalues and projectors, global shift included."""
    components = gate._eigen_components()
    shifts = np.array([shift + gate.global_shift for shift, _ in components], dtype=np.float64)
    return Spectrum(shifts, tidy(np.stack([projector for _, projector in components])))


def _eigen(gate: cirq.EigenGate, qubits: Qubits) -> Iterator[Part]:
    """Families whose spectrum depends on the class and the global shift alone."""
    key = (type(gate), gate.global_shift)
    spectrum = _spectra.get(key)
    if spectrum is None:
        spectrum = _spectra[key] = eigen_spectrum(gate)
    yield spectral(qubits, spectrum, gate.exponent)


def _z(qubit: cirq.Qid, exponent: Any) -> Part:
    return spectral((qubit,), Z_SPECTRUM, exponent)


def _phased_x(gate: cirq.PhasedXPowGate, qubits: Qubits) -> Iterator[Part]:
    axis = parameter(gate.phase_exponent)
    x = cirq.XPowGate(exponent=gate.exponent, global_shift=gate.global_shift)
    if isinstance(axis, float):
        frame = np.diag([1, phase(axis)])
        plain = eigen_spectrum(x)
        turned = tidy(frame @ plain.projectors @ frame.conj())
        yield spectral(qubits, Spectrum(plain.half_turns, turned), gate.exponent)
        return
    yield _z(qubits[0], -axis)
    yield from _eigen(x, qubits)
    yield _z(qubits[0], axis)


def _phased_xz(gate: cirq.PhasedXZGate, qubits: Qubits) -> Iterator[Part]:
    yield _z(qubits[0], -gate.axis_phase_exponent)
    yield from _eigen(cirq.XPowGate(exponent=gate.x_exponent), qubits)
    yield _z(qubits[0], gate.axis_phase_exponent + gate.z_exponent)


_SWAP_FRAME = diagonal_spectrum(0.0, -1.0, 1.0, 0.0)


def _phased_iswap(gate: cirq.PhasedISwapPowGate, qubits: Qubits) -> Iterator[Part]:
    axis = parameter(gate.phase_exponent)
    if isinstance(axis, float):
        yield spectral(qubits, eigen_spectrum(gate), gate.exponent)
        return
    yield spectral(qubits, _SWAP_FRAME, axis)
    yield from _eigen(cirq.ISwapPowGate(exponent=gate.exponent, global_shift=gate.global_shift), qubits)
    yield spectral(qubits, _SWAP_FRAME, -axis)


def _fsim(gate: cirq.FSimGate, qubits: Qubits) -> Iterator[Part]:
    yield from _eigen(cirq.ISwapPowGate(exponent=-2 * half_turns(gate.theta)), qubits)
    yield from _eigen(cirq.CZPowGate(exponent=-half_turns(gate.phi)), qubits)


def _phased_fsim(gate: cirq.PhasedFSimGate, qubits: Qubits) -> Iterator[Part]:
    for radians, qubit in zip(gate.rz_angles_before, qubits, strict=True):
        yield _z(qubit, half_turns(radians))
    yield from _fsim(cirq.FSimGate(gate.theta, gate.phi), qubits)
    for radians, qubit in zip(gate.rz_angles_after, qubits, strict=True):
        yield _z(qubit, half_turns(radians))


def _diagonal(gate: Any, qubits: Qubits) -> Iterator[Part] | None:
    if len(qubits) > DENSE_QUBITS and not cirq.is_parameterized(gate):
        return None
    return _diagonal_parts([half_turns(angle) for angle in gate.diag_angles_radians], qubits)


def _diagonal_parts(turns: list[float | sympy.Expr], qubits: Qubits) -> Iterator[Part]:
    constant = [phase(t) if isinstance(t, float) else 1.0 for t in turns]
    if any(value != 1.0 for value in constant):
        yield fixed(qubits, np.diag(np.array(constant, dtype=np.complex128)))
    for expression in dict.fromkeys(t for t in turns if not isinstance(t, float)):
        yield spectral(qubits, diagonal_spectrum(*[float(t == expression) for t in turns]), expression)


def _pauli_phasor(gate: cirq.PauliStringPhasorGate, qubits: Qubits) -> Iterator[Part] | None:
    # With identities in the string, Cirq's decomposition phases another parity than its documentation says;
    # what Cirq's simulators do counts.
    if len(qubits) > DENSE_QUBITS or not all(gate.dense_pauli_string.pauli_mask):
        return None
    return _pauli_phasor_parts(gate, qubits)


def _pauli_phasor_parts(gate: cirq.PauliStringPhasorGate, qubits: Qubits) -> Iterator[Part]:
    word: Matrix = np.eye(1, dtype=np.complex128)
    for pauli in gate.dense_pauli_string.pauli_mask:
        word = np.kron(word, _PAULI[int(pauli)])
    identity = np.eye(len(word))
    for sign, exponent in ((-1, gate.exponent_neg), (1, gate.exponent_pos)):
        projectors = np.stack([identity - sign * word, identity + sign * word]) / 2
        yield spectral(qubits, Spectrum(np.array([0.0, 1.0]), projectors), exponent)


def _pauli_word(gate: cirq.BaseDensePauliString, qubits: Qubits) -> Iterator[Part]:
    coefficient = complex(gate.coefficient)
    if abs(abs(coefficient) - 1) > 1e-8:
        raise CircuitError(
            f"{gate} is not unitary: in a circuit, a Pauli string must have a coefficient of modulus 1"
        )
    for pauli, qubit in zip(gate.pauli_mask, qubits, strict=True):
        if pauli:
            yield fixed((qubit,), tidy(_PAULI[int(pauli)]))
    yield from _phase(coefficient)


def _phase(coefficient: complex) -> Iterator[Part]:
    if coefficient != 1:
        yield fixed((), np.array([[coefficient]]))


def _global_phase(gate: cirq.GlobalPhaseGate, qubits: Qubits) -> Iterator[Part]:
    if not cirq.parameter_names(gate):
        return _phase(complex(gate.coefficient))
    turns = _half_turns_of_phase(gate.coefficient)
    if turns is None:
        raise CircuitError(f"{gate!r} must have a coefficient of the form exp(I*x) or I**x, with a real x")
    return iter([spectral((), _PHASE_SPECTRUM, turns)])


def _half_turns_of_phase(value: sympy.Expr) -> sympy.Expr | None:
    """The real x in `exp(i pi x)`, if the form of the expression shows that there is one."""
    if value.is_Mul:
        turns = [_half_turns_of_phase(factor) for factor in value.args]
        return None if None in turns else sympy.Add(*turns)
    if isinstance(value, sympy.exp):
        x = sympy.expand(value.args[0] / (sympy.I * sympy.pi))
        return None if x.has(sympy.I) else x
    base, power = value.as_base_exp()
    if base.free_symbols or not math.isclose(abs(complex(base)), 1.0):
        return None
    return sympy.arg(base) / sympy.pi * power


def _parallel(gate: cirq.ParallelGate, qubits: Qubits) -> Iterator[cirq.Operation]:
    return (gate.sub_gate.on(qubit) for qubit in qubits)


def _phase_gradient(gate: cirq.PhaseGradientGate, qubits: Qubits) -> Iterator[Part]:
    for place, qubit in enumerate(qubits):
        yield _z(qubit, gate.exponent / 2**place)


def _matrix(gate: cirq.Gate, qubits: Qubits) -> Iterator[Part]:
    yield fixed(qubits, _finite_matrix(gate))


def _checked_matrix(gate: cirq.Gate, qubits: Qubits) -> Iterator[Part]:
    """A matrix of the user's own, which Cirq takes unchecked where it is told to."""
    matrix = _finite_matrix(gate)
    if not np.allclose(matrix @ matrix.conj().T, np.eye(len(matrix)), atol=1e-6):
        raise CircuitError(f"{gate!r} must have a unitary matrix, but has another one")
    yield fixed(qubits, matrix)


def _finite_matrix(gate: cirq.Gate) -> Matrix:
    matrix = tidy(cirq.unitary(gate))
    if not np.isfinite(matrix).all():
        raise CircuitError(f"{gate!r} must have finite parameters, but its matrix holds NaN or infinity")
    return matrix


def _matrix_or(symbolic: Row) -> Row:
    """A row that applies where there are symbols; without, one matrix is shorter."""

    def either(gate: cirq.Gate, qubits: Qubits) -> Iterator[Part | cirq.Operation] | None:
        return symbolic(gate, qubits) if cirq.is_parameterized(gate) else _matrix(gate, qubits)

    return either


def _own_spectrum(gate: cirq.EigenGate, qubits: Qubits) -> Iterator[Part] | None:
    """Other eigenvalue gates, also those defined elsewhere, if only their exponent holds symbols."""
    if not cirq.is_parameterized(gate) or cirq.parameter_names(gate) != cirq.parameter_names(gate.exponent):
        return None
    return iter([spectral(qubits, eigen_spectrum(gate), gate.exponent)])


def _no_row(gate: cirq.Gate, qubits: Qubits) -> None:
    return None


def _nothing(gate: cirq.Gate, qubits: Qubits) -> Iterator[Part]:
    return iter(())


NEWER_FAMILIES: tuple[type[cirq.Gate], ...] = tuple(
    getattr(cirq, name) for name in ("CYPowGate", "CCYPowGate") if hasattr(cirq, name)
)
"""Families that the oldest supported Cirq does not have."""

_EIGEN_FAMILIES: tuple[type[cirq.Gate], ...] = (
    type(cirq.X), type(cirq.Y), type(cirq.Z),
    cirq.Rx, cirq.Ry, cirq.Rz, cirq.XPowGate, cirq.YPowGate, cirq.ZPowGate, cirq.HPowGate,
    cirq.CXPowGate, cirq.CZPowGate, cirq.SwapPowGate, cirq.ISwapPowGate,
    cirq.XXPowGate, cirq.YYPowGate, cirq.ZZPowGate, cirq.MSGate,
    cirq.CCXPowGate, cirq.CCZPowGate, *NEWER_FAMILIES,
)  # fmt: skip

ROWS: Mapping[type[cirq.Gate], Row] = {
    **dict.fromkeys(_EIGEN_FAMILIES, _eigen),
    cirq.IdentityGate: _nothing,
    cirq.WaitGate: _nothing,
    cirq.GlobalPhaseGate: _global_phase,
    cirq.MatrixGate: _checked_matrix,
    cirq.ParallelGate: _parallel,
    cirq.PhaseGradientGate: _phase_gradient,
    cirq.DensePauliString: _pauli_word,
    cirq.MutableDensePauliString: _pauli_word,
    cirq.DiagonalGate: _diagonal,
    cirq.TwoQubitDiagonalGate: _diagonal,
    cirq.ThreeQubitDiagonalGate: _diagonal,
    cirq.PauliStringPhasorGate: _pauli_phasor,
    cirq.PhasedXPowGate: _matrix_or(_phased_x),
    cirq.PhasedXZGate: _matrix_or(_phased_xz),
    cirq.PhasedISwapPowGate: _matrix_or(_phased_iswap),
    cirq.FSimGate: _matrix_or(_fsim),
    cirq.PhasedFSimGate: _matrix_or(_phased_fsim),
}


def row_of(gate: cirq.Gate) -> Row:
    """The row for a gate, which may not fit."""
    row = ROWS.get(type(gate))
    if row is None:
        row = _own_spectrum if isinstance(gate, cirq.EigenGate) else _no_row
    return row
