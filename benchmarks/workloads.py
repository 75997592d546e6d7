"""The tasks that are timed: QCNN circuits of `qflock.models`, with the same seeded inputs for all."""

from __future__ import annotations

from dataclasses import dataclass

import cirq
import numpy as np
import sympy

from benchmarks.peers.harness import Gate, Workload
from qflock.engine.simulator import Simulator
from qflock.models.cluster_data import cluster_state
from qflock.models.qcnn import level, tower

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


@dataclass(frozen=True)
class Task:
    """One value-and-gradient task in Cirq's terms; the loss is the sum over all observables and examples."""

    name: str
    preparation: cirq.Circuit
    model: cirq.Circuit
    observables: tuple[cirq.PauliString, ...]
    angles: np.ndarray

    @property
    def qubits(self) -> tuple[cirq.Qid, ...]:
        return tuple(sorted(self.preparation.all_qubits()))

    @property
    def data_circuits(self) -> list[cirq.Circuit]:
        """The preparation and, for each example, one Rx where its angle is not 0."""
        encodings = [
            cirq.Circuit(
                cirq.rx(float(angle))(qubit) for angle, qubit in zip(row, self.qubits, strict=True) if angle
            )
            for row in self.angles
        ]
        return [self.preparation + encoding for encoding in encodings]


def hybrid(qubits: int, examples: int, dense: bool = False) -> Task:
    """Cluster states, one convolution and one pooling with 21 symbols, Z on the surviving half."""
    line = cirq.GridQubit.rect(1, qubits)
    model, survivors = level(line, "filter0")
    readouts = tuple(cirq.PauliString(cirq.Z(qubit)) for qubit in survivors)
    return Task(
        f"{qubits}x{examples}", cluster_state(line), model, readouts, excitations(qubits, examples, dense)
    )


def full(qubits: int, examples: int) -> Task:
    """Cluster states, convolution and pooling down to one qubit, Z on that."""
    line = cirq.GridQubit.rect(1, qubits)
    model, last = tower(line)
    readouts = (cirq.PauliString(cirq.Z(last)),)
    return Task(
        f"{qubits}x{examples} full", cluster_state(line), model, readouts, excitations(qubits, examples)
    )


def parameter_values(count: int) -> np.ndarray:
    """Exponents in [0, 2), one period of most gates."""
    return np.random.default_rng(SEED).uniform(0, 2, count)


def to_workload(task: Task) -> Workload:
    """The same circuits as plain numbers, so that no simulator's own circuit type is in the file."""
    position = {qubit: index for index, qubit in enumerate(task.qubits)}
    # The simulator's order, so that gradients can be compared number by number.
    symbols = list(Simulator(task.model, task.observables).symbols)
    return Workload(
        name=task.name,
        qubits=len(task.qubits),
        preparation=_gates(task.preparation, position, symbols),
        angles=task.angles,
        model=_gates(task.model, position, symbols),
        readouts=tuple(position[observable.qubits[0]] for observable in task.observables),
        parameters=parameter_values(len(symbols)),
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
