"""Random Cirq circuits of all gate families for hypothesis."""

from __future__ import annotations

import cirq
import numpy as np
import scipy.stats
import sympy
from hypothesis import strategies as st

SYMBOLS = sympy.symbols("a b c")
A, B, C = SYMBOLS
EXPRESSIONS = [A, B, C, 2 * A - 0.3, -B / 3, A * B, A**2, sympy.sin(C), A + B * C, 0.37, 1]


def _families(t, u, v):
    """Gates by number of qubits, for three angles."""
    return {
        1: [
            cirq.rx(t), cirq.ry(t), cirq.rz(t), cirq.X**t, cirq.Y**u, cirq.Z**v, cirq.H**t, cirq.S, cirq.T,
            cirq.XPowGate(exponent=t, global_shift=0.7),
            cirq.PhasedXPowGate(phase_exponent=t, exponent=u, global_shift=0.2),
            cirq.PhasedXZGate(x_exponent=t, z_exponent=u, axis_phase_exponent=v),
        ],
        2: [
            cirq.CZ**t, cirq.CNOT**u, cirq.SWAP**t, cirq.ISWAP**v, cirq.XX**t, cirq.YY**u, cirq.ZZ**v, cirq.ms(t),
            cirq.PhasedISwapPowGate(phase_exponent=t, exponent=u), cirq.FSimGate(t, u), cirq.givens(v),
            cirq.PhasedFSimGate(t, u, v, t, u), cirq.TwoQubitDiagonalGate([t, u, v, t]),
            cirq.rx(t).controlled(), cirq.ControlledGate(cirq.Y**u, control_values=[0]),
            cirq.ControlledGate(cirq.XPowGate(exponent=t, global_shift=0.3)),
        ],
        3: [
            cirq.CCX**t, cirq.CCZ**u, cirq.CSWAP, cirq.ControlledGate(cirq.ISWAP**v),
            cirq.ControlledGate(cirq.ry(t), num_controls=2, control_values=[0, 1]),
        ],
    }  # fmt: skip


@st.composite
def operations(draw: st.DrawFn, qubits: list[cirq.Qid], numbers_only: bool) -> cirq.Operation:
    if numbers_only:
        angles = [draw(st.floats(-3, 3).map(lambda x: round(x, 3))) for _ in range(3)]
    else:
        angles = [draw(st.sampled_from(EXPRESSIONS)) for _ in range(3)]
    size = draw(st.integers(1, min(3, len(qubits))))
    targets = draw(st.permutations(qubits))[:size]
    if draw(st.integers(0, 9)) == 0:
        unitary = scipy.stats.unitary_group.rvs(1 << size, random_state=draw(st.integers(0, 10**6)))
        return cirq.MatrixGate(unitary).on(*targets)
    return draw(st.sampled_from(_families(*angles)[size])).on(*targets)


def circuits(
    qubits: list[cirq.Qid], max_operations: int, numbers_only: bool = False
) -> st.SearchStrategy[cirq.Circuit]:
    return st.lists(operations(qubits, numbers_only), max_size=max_operations).map(cirq.Circuit)


@st.composite
def observables(draw: st.DrawFn, qubits: list[cirq.Qid]) -> cirq.PauliSum:
    total = cirq.PauliSum() + draw(st.sampled_from([0.0, 0.5]))
    for _ in range(draw(st.integers(1, 3))):
        chosen = draw(st.permutations(qubits))[: draw(st.integers(1, len(qubits)))]
        paulis = {q: draw(st.sampled_from([cirq.X, cirq.Y, cirq.Z])) for q in chosen}
        total += draw(st.sampled_from([1.0, -0.5, 2.0])) * cirq.PauliString(paulis)
    return total


def dense_expectations(
    circuit: cirq.Circuit, sums: list[cirq.PauliSum], qubits: list[cirq.Qid]
) -> np.ndarray:
    """Cirq's own simulator in complex128."""
    state = cirq.Simulator(dtype=np.complex128).simulate(circuit, qubit_order=qubits).final_state_vector
    positions = {q: k for k, q in enumerate(qubits)}
    return np.array([s.expectation_from_state_vector(state, positions).real for s in sums])
