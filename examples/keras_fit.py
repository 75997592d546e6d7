"""A hybrid model in plain Keras: a circuit and a Dense layer learn to tell two kinds of state apart."""

from __future__ import annotations

import cirq
import keras
import numpy as np
import sympy

from qflock.layers import PQC, convert_to_tensor

keras.utils.set_random_seed(1)
a, b = cirq.LineQubit.range(2)

# Data: rotations of the first qubit, by small angles (label +1) or large ones (label -1).
angles = np.random.default_rng(1).uniform(0, np.pi, 64)
circuits = convert_to_tensor([cirq.Circuit(cirq.rx(angle)(a)) for angle in angles])
labels = np.where(angles < np.pi / 2, 1.0, -1.0).astype("float32")

# Model: one trainable circuit behind each data circuit, two readouts, one number.
x, y, z = sympy.symbols("x y z")
ansatz = cirq.Circuit(cirq.ry(x)(a), cirq.CNOT(a, b), cirq.rx(y)(a), cirq.rz(z)(b), cirq.ry(x)(b))
inputs = keras.Input(shape=(), dtype="string")
readouts = PQC(ansatz, [cirq.Z(a), cirq.Z(b)])(inputs)
model = keras.Model(inputs, keras.layers.Dense(1, activation="tanh")(readouts))

model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
history = model.fit(circuits, labels, batch_size=16, epochs=40, verbose=0)
accuracy = np.mean(np.sign(model.predict(circuits, verbose=0)[:, 0]) == labels)

print(f"loss {history.history['loss'][0]:.2f} -> {history.history['loss'][-1]:.2f}, accuracy {accuracy:.2f}")
assert accuracy > 0.9
