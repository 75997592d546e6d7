"""TensorFlow Quantum: data circuits as a string tensor, PQC, adjoint differentiator, inside tf.function."""

from __future__ import annotations

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cirq
import numpy as np
import sympy
import tensorflow as tf
import tensorflow_quantum as tfq
from harness import Answer, Gate, Workload, main, measure

GATES = {
    "H": cirq.H,
    "CZ": cirq.CZ,
    "CNOT": cirq.CNOT,
    "X": cirq.X,
    "Y": cirq.Y,
    "Z": cirq.Z,
    "XX": cirq.XX,
    "YY": cirq.YY,
    "ZZ": cirq.ZZ,
}


def solve(workload: Workload) -> Answer:
    qubits = cirq.GridQubit.rect(1, workload.qubits)
    # Names with leading zeros: the layer orders its weights by the symbols' names.
    symbols = [sympy.Symbol(f"p{index:03}") for index in range(len(workload.parameters))]
    layer = tfq.layers.PQC(
        cirq.Circuit(operation(gate, qubits, symbols) for gate in workload.model),
        [cirq.Z(qubits[readout]) for readout in workload.readouts],
        differentiator=tfq.differentiators.Adjoint(),
    )
    preparation = cirq.Circuit(operation(gate, qubits, symbols) for gate in workload.preparation)
    data = tfq.convert_to_tensor([preparation + encoding(angles, qubits) for angles in workload.angles])
    layer(data[:1])
    layer.set_weights([workload.parameters.astype(np.float32)])

    @tf.function
    def step(circuits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            expectations = layer(circuits)
            loss = tf.reduce_sum(expectations)
        return expectations, tape.gradient(loss, layer.trainable_variables[0])

    values = tf.function(layer)
    forward = measure(lambda: values(data).numpy())
    timing = measure(lambda: step(data)[1].numpy())
    expectations, gradient = (tensor.numpy() for tensor in step(data))
    return Answer(
        "TensorFlow Quantum", tfq.__version__, workload.name, forward, timing, expectations, gradient
    )


def operation(gate: Gate, qubits: list[cirq.GridQubit], symbols: list[sympy.Symbol]) -> cirq.Operation:
    exponent = gate.factor if gate.parameter is None else gate.factor * symbols[gate.parameter]
    return GATES[gate.name](*(qubits[index] for index in gate.qubits)) ** exponent


def encoding(angles: np.ndarray, qubits: list[cirq.GridQubit]) -> cirq.Circuit:
    return cirq.Circuit(cirq.rx(float(angles[index]))(qubits[index]) for index in np.flatnonzero(angles))


if __name__ == "__main__":
    main(solve)
