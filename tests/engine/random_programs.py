"""Random programs and Pauli words for hypothesis."""

from __future__ import annotations

import numpy as np
import scipy.stats
from hypothesis import strategies as st

from qflock.program.operators import Operator, fixed, rotation
from qflock.program.program import Gate, Program

X = np.array([[0, 1], [1, 0]], dtype=complex)
Y = np.array([[0, -1j], [1j, 0]])
Z = np.diag([1.0 + 0j, -1.0])
I2 = np.eye(2, dtype=complex)


def _rotation(hermitian: np.ndarray) -> Operator:
    values, vectors = np.linalg.eigh(hermitian)
    return rotation(values, np.stack([np.outer(v, v.conj()) for v in vectors.T]))


ROTATIONS = [
    *[_rotation(p / 2) for p in (X, Y, Z)],
    *[_rotation(np.kron(p, p) / 2) for p in (X, Y, Z)],
    _rotation(np.kron(np.diag([0, 1]), Z) / 2),
    _rotation(np.kron(Z, X) / 2),
    _rotation(np.kron(np.kron(np.diag([0, 1]), Z), X) / 2),
]
NAMED = [
    X,
    Z,
    (X + Z) / np.sqrt(2),
    np.diag([1, 1j]),
    np.diag([1, 1, 1, -1]),
    np.eye(4)[[0, 1, 3, 2]],
    np.eye(4)[[0, 2, 1, 3]],
]


def random_unitary(qubits: int, seed: int) -> np.ndarray:
    return scipy.stats.unitary_group.rvs(1 << qubits, random_state=seed) if qubits else np.eye(1)


@st.composite
def operators(draw: st.DrawFn, max_qubits: int) -> Operator:
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return fixed(random_unitary(draw(st.integers(1, min(3, max_qubits))), draw(st.integers(0, 10**6))))
    pool = [fixed(np.asarray(m, dtype=complex)) for m in NAMED] if kind == 1 else ROTATIONS
    return draw(st.sampled_from([op for op in pool if op.qubit_count <= max_qubits]))


@st.composite
def programs(draw: st.DrawFn, min_qubits: int = 1, max_qubits: int = 10, max_gates: int = 25) -> Program:
    qubit_count = draw(st.integers(min_qubits, max_qubits))
    expression_count = draw(st.integers(1, 4))
    gates = []
    for _ in range(draw(st.integers(0, max_gates))):
        operator = draw(operators(qubit_count))
        qubits = tuple(draw(st.permutations(range(qubit_count)))[: operator.qubit_count])
        expression = -1 if operator.is_fixed else draw(st.integers(0, expression_count - 1))
        gates.append(Gate(qubits, operator, expression))
    return Program(qubit_count, tuple(gates), expression_count)


def words(qubit_count: int) -> st.SearchStrategy[list[tuple[tuple[int, str], ...]]]:
    word = st.dictionaries(st.integers(0, qubit_count - 1), st.sampled_from("XYZ"), min_size=1)
    return st.lists(word.map(lambda d: tuple(sorted(d.items()))), min_size=1, max_size=4, unique=True)


def angles_of(program: Program, seed: int, batch: int | None = None) -> np.ndarray:
    shape = (program.expression_count,) if batch is None else (batch, program.expression_count)
    return np.random.default_rng(seed).uniform(-3, 3, shape)


def thousand_gates(qubit_count: int, seed: int) -> Program:
    """A deep program of rotations and named gates, with 50 angles."""
    rng = np.random.default_rng(seed)
    pool = [*ROTATIONS, *[fixed(np.asarray(m, dtype=complex)) for m in NAMED]]
    gates = []
    for k in range(1000):
        operator = ROTATIONS[k % len(ROTATIONS)] if k < 500 else pool[rng.integers(len(pool))]
        qubits = tuple(rng.permutation(qubit_count)[: operator.qubit_count].tolist())
        gates.append(Gate(qubits, operator, -1 if operator.is_fixed else int(rng.integers(50))))
    order = rng.permutation(1000)
    return Program(qubit_count, tuple(gates[k] for k in order), 50)
