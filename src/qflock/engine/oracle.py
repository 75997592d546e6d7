"""The oracle: dense, complex128, one gate after the other. Slow, obvious, and what the fast paths are tested against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qflock.engine.compiled import PauliWord
from qflock.program.program import Gate, Program

_PAULI = {
    "X": np.array([[0, 1], [1, 0]], dtype=np.complex128),
    "Y": np.array([[0, -1j], [1j, 0]], dtype=np.complex128),
    "Z": np.array([[1, 0], [0, -1]], dtype=np.complex128),
}

State = NDArray[np.complex128]


def state_after(program: Program, angles: NDArray[np.float64], initial: State | None = None) -> State:
    """The state vector, one axis of size 2 per qubit, after a program.

    Args:
        program: The gates.
        angles: `(expressions,)` float64.
        initial: The state before; |0...0> when None.
    """
    state = ground_state(program.qubit_count) if initial is None else initial
    for gate in program.gates:
        state = apply(_unitary(gate, angles), gate.qubits, state)
    return state


def ground_state(qubit_count: int) -> State:
    """|0...0> on `qubit_count` qubits."""
    state = np.zeros((2,) * qubit_count, dtype=np.complex128)
    state[(0,) * qubit_count] = 1
    return state


def expectations(
    program: Program, words: Sequence[PauliWord], angles: NDArray[np.float64], initial: State | None = None
) -> NDArray[np.float64]:
    """`<psi|P|psi>` for each Pauli word, `(words,)` float64."""
    state = state_after(program, angles, initial)
    return np.array([_inner(state, _measured(word, state)).real for word in words])


def jacobian(
    program: Program, words: Sequence[PauliWord], angles: NDArray[np.float64], initial: State | None = None
) -> NDArray[np.float64]:
    """`d<P>/d angle`, `(words, expressions)` float64, by differentiating each gate where it stands.

    `d<psi|P|psi>/dx = 2 Re <psi|P|d psi>`, with `d psi` the sum over the gates with angle x of the circuit in which
    that one gate is replaced by its derivative.
    """
    result = np.zeros((len(words), program.expression_count))
    final = state_after(program, angles, initial)
    measured = [_measured(word, final) for word in words]
    for k, gate in enumerate(program.gates):
        if gate.expression < 0:
            continue
        before = Program(program.qubit_count, program.gates[:k], program.expression_count)
        after = Program(program.qubit_count, program.gates[k + 1 :], program.expression_count)
        changed = apply(_derivative(gate, angles), gate.qubits, state_after(before, angles, initial))
        change = state_after(after, angles, changed)
        result[:, gate.expression] += [2 * _inner(m, change).real for m in measured]
    return result


def apply(matrix: NDArray[np.complex128], qubits: Sequence[int], state: State) -> State:
    """A matrix on some of a state's qubits; `qubits[0]` is the most significant bit of the matrix index."""
    k = len(qubits)
    tensor = matrix.reshape((2,) * (2 * k))
    return np.moveaxis(np.tensordot(tensor, state, axes=(range(k, 2 * k), qubits)), range(k), qubits)


def _unitary(gate: Gate, angles: NDArray[np.float64]) -> NDArray[np.complex128]:
    return gate.operator.unitary(angles[gate.expression] if gate.expression >= 0 else 0.0)


def _derivative(gate: Gate, angles: NDArray[np.float64]) -> NDArray[np.complex128]:
    turns = gate.operator.half_turns
    assert turns is not None
    weights = 1j * np.pi * turns * np.exp(1j * np.pi * turns * angles[gate.expression])
    return np.tensordot(weights, gate.operator.matrices, axes=1)


def _measured(word: PauliWord, state: State) -> State:
    for q, pauli in word:
        state = apply(_PAULI[pauli], (q,), state)
    return state


def _inner(a: State, b: State) -> complex:
    return complex(np.vdot(a, b))
