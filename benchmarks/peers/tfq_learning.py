"""TensorFlow Quantum trains the hybrid QCNN: PQC, Dense 8, Dense 1, Adam, mean squared error."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cirq
import numpy as np
import sympy
import tensorflow as tf
import tensorflow_quantum as tfq
from harness import Workload, fit_and_score, load_workload
from tfq import encoding, operation


def train(workload: Workload, labels: np.ndarray, plan: dict[str, float], seed: int) -> dict[str, float]:
    tf.keras.utils.set_random_seed(seed)
    qubits = cirq.GridQubit.rect(1, workload.qubits)
    symbols = [sympy.Symbol(f"p{index:03}") for index in range(len(workload.parameters))]
    preparation = cirq.Circuit(operation(gate, qubits, symbols) for gate in workload.preparation)
    data = tfq.convert_to_tensor([preparation + encoding(angles, qubits) for angles in workload.angles])
    quantum = tfq.layers.PQC(
        cirq.Circuit(operation(gate, qubits, symbols) for gate in workload.model),
        [cirq.Z(qubits[readout]) for readout in workload.readouts],
        differentiator=tfq.differentiators.Adjoint(),
    )
    circuits = tf.keras.Input(shape=(), dtype=tf.string)
    outputs = tf.keras.layers.Dense(1)(tf.keras.layers.Dense(8)(quantum(circuits)))
    model = tf.keras.Model(circuits, outputs)
    model.compile(optimizer=tf.keras.optimizers.Adam(plan["learning_rate"]), loss="mse")
    return fit_and_score(tf.keras, model, data, labels, plan)


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    plan = json.loads(source.with_suffix(".json").read_text())
    labels = np.array(plan.pop("labels"))
    seeds = plan.pop("seeds")
    workload = load_workload(source)
    target.write_text(json.dumps([train(workload, labels, plan, seed) for seed in seeds]))


if __name__ == "__main__":
    main()
