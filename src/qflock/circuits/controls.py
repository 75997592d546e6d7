"""Controlled parts: what a gate becomes when other qubits decide whether it is applied.

A controlled rotation is a rotation again: its projectors act where the controls match, and where they do
not, the half turn is 0. On many qubits, where that matrix would be large, the part is diagonalised on its own
qubits and each eigenvalue becomes a multiply-controlled phase, split into parts on at most four qubits
(Barenco et al., "Elementary gates for quantum computation", Phys. Rev. A 52, 3457, 1995).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import cirq
import numpy as np
import scipy.linalg
import sympy
from cirq.ops.control_values import AbstractControlValues

from qflock.circuits.parts import Fixed, Matrix, Part, Qubits, Rotation, fixed, spectral, tidy
from qflock.circuits.rows import DENSE_QUBITS, diagonal_spectrum

Bits: TypeAlias = tuple[int, ...]

MOST_QUBITS = 10
"""No single matrix acts on more qubits than this."""

_X = tidy(cirq.unitary(cirq.X))


def controlled(
    controls: Sequence[cirq.Qid], values: AbstractControlValues, parts: Sequence[Part]
) -> Iterator[Part]:
    """Parts that apply `parts` where the controls have one of the given values, and nothing elsewhere.

    Args:
        controls: Control qubits, none of which the parts act on.
        values: Which values of the controls switch the parts on.
        parts: First applied first.

    Returns:
        Parts, first applied first.
    """
    qubits, patterns = _simplified(tuple(controls), values)
    for part in parts:
        if not qubits:
            yield part
            continue
        size = len(qubits) + len(part.qubits)
        if size <= DENSE_QUBITS or (len(part.qubits) > 2 and size <= MOST_QUBITS):
            yield _dense(qubits, patterns, part)
        else:
            yield from _wide(qubits, patterns, part)


def _simplified(controls: Qubits, values: AbstractControlValues) -> tuple[Qubits, list[Bits]]:
    """Controls that matter, and the bit patterns that switch on; a control with both values does not."""
    patterns = {tuple(int(bit) for bit in pattern) for pattern in values.expand()}
    for place in reversed(range(len(controls))):
        flipped = {(*p[:place], 1 - p[place], *p[place + 1 :]) for p in patterns}
        if flipped == patterns:
            patterns = {(*p[:place], *p[place + 1 :]) for p in patterns}
            controls = (*controls[:place], *controls[place + 1 :])
    return controls, sorted(patterns)


def _dense(controls: Qubits, patterns: Sequence[Bits], part: Part) -> Part:
    on = np.zeros(2 ** len(controls))
    on[[int("".join(map(str, pattern)), 2) for pattern in patterns]] = 1.0
    qubits = (*controls, *part.qubits)
    idle = np.kron(np.diag(1.0 - on), np.eye(2 ** len(part.qubits)))
    if isinstance(part, Fixed):
        return fixed(qubits, np.kron(np.diag(on), part.matrix) + idle)
    turns, projectors = part.half_turns, np.kron(np.diag(on), part.projectors)
    still = np.flatnonzero(turns == 0.0)
    if len(still):
        projectors[still[0]] += idle
        return Rotation(qubits, turns, projectors, part.exponent)
    return Rotation(qubits, np.append(turns, 0.0), np.concatenate([projectors, idle[None]]), part.exponent)


def _wide(controls: Qubits, patterns: Sequence[Bits], part: Part) -> Iterator[Part]:
    basis, turns = _diagonalised(part)
    exponent = part.exponent if isinstance(part, Rotation) else sympy.Integer(1)
    size = len(part.qubits)
    turn_basis = size > 0 and not np.array_equal(basis, np.eye(2**size))
    if turn_basis:
        yield fixed(part.qubits, tidy(basis.conj().T))
    for state in np.flatnonzero(turns):
        tail = tuple(int(state) >> (size - 1 - k) & 1 for k in range(size))
        for pattern in patterns:
            yield from _phase_where(
                (*controls, *part.qubits), (*pattern, *tail), float(turns[state]), exponent
            )
    if turn_basis:
        yield fixed(part.qubits, tidy(basis))


def _diagonalised(part: Part) -> tuple[Matrix, np.ndarray]:
    """Eigenvectors of a part as columns, and the half turns of each at exponent 1."""
    if isinstance(part, Rotation):
        number = np.arange(len(part.half_turns), dtype=np.float64)
        if all(np.count_nonzero(p - np.diag(np.diagonal(p))) == 0 for p in part.projectors):
            values = np.einsum("j,jaa->a", part.half_turns, part.projectors).real
            return np.eye(len(values), dtype=np.complex128), values
        found, vectors = np.linalg.eigh(np.tensordot(number, part.projectors, axes=1))
        return vectors, part.half_turns[np.rint(found).astype(int)]
    if np.count_nonzero(part.matrix - np.diag(np.diagonal(part.matrix))) == 0:
        return np.eye(len(part.matrix), dtype=np.complex128), np.angle(np.diagonal(part.matrix)) / np.pi
    triangle, vectors = scipy.linalg.schur(part.matrix, output="complex")
    return vectors, np.angle(np.diagonal(triangle)) / np.pi


def _phase_where(qubits: Qubits, bits: Bits, turns: float, exponent: sympy.Expr) -> Iterator[Part]:
    """The phase `exp(i pi turns exponent)` on the one basis state `bits`."""
    flips = [fixed((q,), _X) for q, bit in zip(qubits, bits, strict=True) if not bit]
    yield from flips
    yield from _phase_of_ones(qubits, turns, exponent)
    yield from flips


def _phase_of_ones(qubits: Qubits, turns: float, exponent: sympy.Expr) -> Iterator[Part]:
    """The same phase on the state of ones.

    With a and b the last two bits and C the product of the others: `2abC = ab - (a xor C)b + Cb`.
    """
    if len(qubits) <= DENSE_QUBITS:
        states = [0.0] * (2 ** len(qubits) - 1)
        yield spectral(qubits, diagonal_spectrum(*states, turns), exponent)
        return
    *others, a, b = qubits
    toggle = list(_toggle(tuple(others), a, b))
    yield spectral((a, b), diagonal_spectrum(0, 0, 0, turns / 2), exponent)
    yield from toggle
    yield spectral((a, b), diagonal_spectrum(0, 0, 0, -turns / 2), exponent)
    yield from toggle
    yield from _phase_of_ones((*others, b), turns / 2, exponent)


def _toggle(controls: Qubits, target: cirq.Qid, borrowed: cirq.Qid) -> Iterator[Part]:
    """Flips the target where all controls are one; the borrowed qubit is left as it was."""
    if len(controls) < DENSE_QUBITS:
        matrix = np.eye(2 ** (len(controls) + 1), dtype=np.complex128)
        matrix[-2:, -2:] = _X
        yield fixed((*controls, target), matrix)
        return
    for op in cirq.decompose_multi_controlled_x(list(controls), target, [borrowed]):
        yield fixed(op.qubits, tidy(cirq.unitary(op)))
