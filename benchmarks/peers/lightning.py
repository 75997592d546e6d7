"""PennyLane's lightning.qubit with adjoint differentiation, which takes no batch: examples go one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pennylane as qml
from harness import Answer, Gate, Workload, main, measure
from pennylane import numpy as differentiable

FIXED = {"H": qml.Hadamard, "CZ": qml.CZ, "CNOT": qml.CNOT}
# Powers of Paulis are these rotations by pi times the exponent, up to a global phase.
ROTATIONS = {
    "X": qml.RX,
    "Y": qml.RY,
    "Z": qml.RZ,
    "XX": qml.IsingXX,
    "YY": qml.IsingYY,
    "ZZ": qml.IsingZZ,
}


def solve(workload: Workload) -> Answer:
    device = qml.device("lightning.qubit", wires=workload.qubits, c_dtype=np.complex64)
    observables = [qml.Z(readout) for readout in workload.readouts]

    def circuit(parameters: Any, angles: np.ndarray) -> None:
        for gate in workload.preparation:
            apply(gate, parameters)
        for index in np.flatnonzero(angles):
            qml.RX(float(angles[index]), wires=int(index))
        for gate in workload.model:
            apply(gate, parameters)

    @qml.qnode(device, diff_method="adjoint")
    def loss(parameters: Any, angles: np.ndarray) -> Any:
        circuit(parameters, angles)
        return qml.expval(qml.sum(*observables))

    @qml.qnode(device, diff_method=None)
    def readouts(parameters: Any, angles: np.ndarray) -> Any:
        circuit(parameters, angles)
        return [qml.expval(observable) for observable in observables]

    parameters = differentiable.array(workload.parameters, requires_grad=True)
    gradient_of_example = qml.grad(loss, argnums=0)

    def gradient() -> np.ndarray:
        return np.sum([gradient_of_example(parameters, angles) for angles in workload.angles], axis=0)

    def values() -> np.ndarray:
        return np.array([readouts(workload.parameters, angles) for angles in workload.angles])

    forward = measure(values, at_least=1)
    timing = measure(gradient, at_least=1)
    return Answer("lightning.qubit", qml.version(), workload.name, forward, timing, values(), gradient())


def apply(gate: Gate, parameters: Any) -> None:
    if gate.parameter is None:
        FIXED[gate.name](wires=gate.qubits)
    else:
        ROTATIONS[gate.name](np.pi * gate.factor * parameters[gate.parameter], wires=gate.qubits)


if __name__ == "__main__":
    main(solve)
