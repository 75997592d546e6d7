"""Your own experiment: `qflock train examples/own_experiment.py:experiment --workers 2 --run runs/own`."""

from __future__ import annotations

import cirq
import keras
import numpy as np
import sympy

from qflock.layers import PQC, convert_to_tensor
from qflock.training.data import Data, examples
from qflock.training.experiment import Experiment, sign_accuracy

QUBITS = cirq.LineQubit.range(4)


def model() -> keras.Model:
    """Two layers of rotations and a ring of CZs, all qubits read out."""
    circuit = cirq.Circuit()
    for layer in range(2):
        circuit += [cirq.ry(sympy.Symbol(f"y{layer}_{k}"))(q) for k, q in enumerate(QUBITS)]
        circuit += [cirq.CZ(q, QUBITS[(k + 1) % len(QUBITS)]) for k, q in enumerate(QUBITS)]
    inputs = keras.Input(shape=(), dtype="string")
    readouts = PQC(circuit, [cirq.Z(q) for q in QUBITS])(inputs)
    return keras.Model(inputs, keras.layers.Dense(1)(readouts))


def data(seed: int) -> Data:
    """Points in a square, encoded as angles; the label says on which side of the diagonal they are."""
    points = np.random.default_rng(seed).uniform(-1, 1, (120, 2))
    labels = np.where(points[:, 0] > points[:, 1], 1.0, -1.0)
    circuits = convert_to_tensor([encode(point) for point in points])
    return Data(examples(circuits[:80], labels[:80]), examples(circuits[80:], labels[80:]))


def encode(point: np.ndarray) -> cirq.Circuit:
    """Each coordinate turns two of the qubits."""
    angles = np.tile(np.pi * point / 2, 2)
    return cirq.Circuit(cirq.ry(angle)(q) for angle, q in zip(angles, QUBITS, strict=True))


experiment = Experiment(
    model=model,
    data=data,
    optimizer=lambda learning_rate: keras.optimizers.Adam(learning_rate),
    loss="mean_squared_error",
    metrics=(sign_accuracy,),
    name="which side of the diagonal",
)
