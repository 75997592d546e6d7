"""The tasks that are timed: QCNN circuits of `qflock.models`, with seeded inputs that every simulator gets alike."""

from __future__ import annotations

import cirq
import numpy as np
import sympy

from benchmarks.peers.harness import Gate, Workload

SEED = 2026
SIZES = ((8, 32), (8, 1024), (12, 32), (16, 8), (20, 2))
NAMES: dict[type[cirq.Gate], str] = {
    cirq.HPowGate: "H",
    cirq.CZPowGate: "CZ",
    cirq.CXPowGate: "CNOT",
    cirq.XPowGate: "X",
    cirq.YPowGate: "Y",
    cirq.ZPowGate: "Z",
    cirq.XXPowGate: "XX",
    cirq.YYPowGate: "YY",
    cirq.ZZPowGate: "ZZ",
}


def to_workload(
    name: str,
    preparation: cirq.Circuit,
    angles: np.ndarray,
    model: cirq.Circuit,
    readouts: list[cirq.Qid],
    symbols: list[str],
) -> Workload:
    """The same circuits as plain numbers, so that no simulator's own circuit type is in the file."""
    qubits = sorted(preparation.all_qubits() | model.all_qubits())
    position = {qubit: index for index, qubit in enumerate(qubits)}
    return Workload(
        name=name,
        qubits=len(qubits),
        preparation=_gates(preparation, position, symbols),
        angles=angles,
        model=_gates(model, position, symbols),
        readouts=tuple(position[qubit] for qubit in readouts),
        parameters=np.random.default_rng(SEED).uniform(0, 2, len(symbols)),
    )


def excitations(qubits: int, examples: int, dense: bool = False) -> np.ndarray:
    """One Rx on a random qubit of each example; where `dense`, one on every qubit."""
    rng = np.random.default_rng([SEED, qubits, examples])
    angles = rng.uniform(-np.pi, np.pi, (examples, qubits))
    one = np.arange(qubits) == rng.integers(qubits, size=(examples, 1))
    return angles if dense else np.where(one, angles, 0.0)


def _gates(circuit: cirq.Circuit, position: dict[cirq.Qid, int], symbols: list[str]) -> tuple[Gate, ...]:
    return tuple(_gate(operation, position, symbols) for operation in circuit.all_operations())


def _gate(operation: cirq.Operation, position: dict[cirq.Qid, int], symbols: list[str]) -> Gate:
    gate = operation.gate
    assert isinstance(gate, cirq.EigenGate), operation
    name = next(name for kind, name in NAMES.items() if isinstance(gate, kind))
    qubits = tuple(position[qubit] for qubit in operation.qubits)
    exponent = gate.exponent
    if not isinstance(exponent, sympy.Expr):
        return Gate(name, qubits, None, float(exponent))
    (symbol,) = exponent.free_symbols
    return Gate(name, qubits, symbols.index(str(symbol)), float(exponent.coeff(symbol)))
