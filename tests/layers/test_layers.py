"""The Keras layers: in models, in graphs, after saving and loading, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cirq
import keras
import numpy as np
import pytest
import sympy
import tensorflow as tf

from qflock.errors import CircuitError, EngineError, ObservableError, SymbolError, TensorFormatError
from qflock.layers import PQC, AddCircuit, convert_to_tensor, from_tensor

A, B = cirq.LineQubit.range(2)
MODEL = cirq.Circuit(cirq.rx(sympy.Symbol("u"))(A), cirq.CNOT(A, B), cirq.ry(sympy.Symbol("v"))(B))
READOUTS = [cirq.Z(A), cirq.X(A) * cirq.Z(B)]
VALUES = np.array([0.3, -1.1], dtype=np.float32)
TURNS = (0.1, 0.7, -2.0)
DATA = [cirq.Circuit(cirq.ry(turn)(A), cirq.rz(turn / 2)(B)) for turn in TURNS]


def layer(**options) -> PQC:
    return PQC(MODEL, READOUTS, initializer=keras.initializers.Constant(0), **options)


def expected(data: list[cirq.Circuit], values: np.ndarray = VALUES) -> np.ndarray:
    resolver = {"u": float(values[0]), "v": float(values[1])}
    whole = [circuit + cirq.resolve_parameters(MODEL, resolver) for circuit in data]
    return np.array(
        [
            cirq.Simulator(dtype=np.complex128).simulate_expectation_values(c, READOUTS, qubit_order=[A, B])
            for c in whole
        ]
    ).real


def test_eager_graph_and_model_agree():
    pqc, data = layer(), convert_to_tensor(DATA)
    pqc.set_weights([VALUES])
    inputs = keras.Input(shape=(), dtype="string")
    functional = keras.Model(inputs, pqc(inputs))
    sequential = keras.Sequential([keras.Input(shape=(), dtype="string"), pqc])
    for call in (pqc, tf.function(pqc), functional, sequential):
        np.testing.assert_allclose(call(data), expected(DATA), atol=1e-6)
    np.testing.assert_allclose(pqc(data[:1]), expected(DATA[:1]), atol=1e-6)
    assert pqc(data[:0]).shape == (0, 2)


def test_gradients_are_those_of_differences():
    pqc, data = layer(dtype="float64"), convert_to_tensor(DATA)
    pqc.set_weights([VALUES])

    @tf.function
    def gradient(circuits: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(pqc(circuits) ** 2)
        return tape.gradient(loss, pqc.trainable_variables[0].value)

    def loss(values: np.ndarray) -> float:
        return float((expected(DATA, values) ** 2).sum())

    step = np.eye(2) * 1e-5
    values = VALUES.astype(np.float64)
    differences = [(loss(values + d) - loss(values - d)) / 2e-5 for d in step]
    np.testing.assert_allclose(gradient(data), differences, atol=1e-6)
    np.testing.assert_allclose(gradient(data[:0]), [0, 0])


def test_a_saved_model_predicts_the_same_in_a_fresh_process(tmp_path: Path):
    inputs = keras.Input(shape=(), dtype="string")
    rotated = AddCircuit()(inputs, append=cirq.Circuit(cirq.H(A)))
    pqc = layer()
    model = keras.Model(inputs, keras.layers.Dense(1)(pqc(rotated)))
    pqc.set_weights([VALUES])
    data = convert_to_tensor(DATA)
    path, output = tmp_path / "model.keras", tmp_path / "outputs.npy"
    model.save(path)
    np.save(tmp_path / "data.npy", np.array([bytes(item) for item in data.numpy()], dtype=object))
    code = (
        "import sys, numpy, keras, qflock.layers, tensorflow as tf\n"
        "model = keras.saving.load_model(sys.argv[1])\n"
        "data = numpy.load(sys.argv[2], allow_pickle=True)\n"
        "numpy.save(sys.argv[3], model(tf.constant(list(data))).numpy())\n"
    )
    subprocess.run([sys.executable, "-c", code, path, tmp_path / "data.npy", output], check=True)
    np.testing.assert_allclose(np.load(output), model(data), atol=1e-6)


def test_model_fit_learns():
    inputs = keras.Input(shape=(), dtype="string")
    model = keras.Model(inputs, layer()(inputs))
    model.compile(optimizer=keras.optimizers.Adam(0.2), loss="mse")
    data, target = convert_to_tensor(DATA), expected(DATA)
    history = model.fit(data, target, epochs=80, batch_size=2, verbose=0).history["loss"]
    assert history[-1] < 0.01 < history[0]


def test_circuits_are_joined_on_either_side():
    more = [cirq.Circuit(cirq.X(B)), cirq.Circuit(cirq.Y(B)), cirq.Circuit()]
    one = cirq.Circuit(cirq.H(A))
    assert list(from_tensor(AddCircuit()(convert_to_tensor(DATA), append=more))) == [
        a + b for a, b in zip(DATA, more, strict=True)
    ]
    assert list(from_tensor(AddCircuit()(DATA, prepend=one))) == [one + circuit for circuit in DATA]
    assert list(from_tensor(AddCircuit()(one, append=convert_to_tensor(DATA)))) == [one + c for c in DATA]


def broken(item: bytes) -> tf.Tensor:
    return tf.constant([item])


@pytest.mark.parametrize(
    ("error", "words", "action"),
    [
        (SymbolError, "at least one symbol", lambda: PQC(cirq.Circuit(cirq.X(A)), cirq.Z(A))),
        (ObservableError, "is empty", lambda: PQC(MODEL, [])),
        (ObservableError, "must be Hermitian", lambda: PQC(MODEL, 1j * cirq.Z(A))),
        (CircuitError, "must be a cirq.Circuit, but is a str", lambda: PQC("u", cirq.Z(A))),
        (TensorFormatError, "must hold circuits or Pauli sums", lambda: convert_to_tensor(["u", 3])),
        (
            TensorFormatError,
            "must be of version 1, but is of version 9",
            lambda: layer()(broken(b"qflock9:c")),
        ),
        (CircuitError, "must be circuits, but holds a float32", lambda: layer()(tf.constant([1.0]))),
        (SymbolError, "must hold no symbols, but holds u, v", lambda: layer()(convert_to_tensor([MODEL]))),
        (
            CircuitError,
            "is a measurement",
            lambda: layer()(convert_to_tensor([cirq.Circuit(cirq.measure(A))])),
        ),
        (TensorFormatError, "Exactly one of", lambda: AddCircuit()(DATA)),
        (TensorFormatError, "as many circuits as", lambda: AddCircuit()(DATA, append=[MODEL, MODEL])),
    ],
)
def test_bad_input_is_named(error, words, action):
    with pytest.raises(Exception, match=words) as caught:
        action()
    assert isinstance(caught.value, error) or error.__name__ in str(caught.value)


def test_a_second_derivative_is_refused_rather_than_zero():
    pqc, data = layer(), convert_to_tensor(DATA)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            total = tf.reduce_sum(pqc(data))
        slope = inner.gradient(total, pqc.trainable_variables[0])
        penalty = tf.reduce_sum(slope**2)
    with pytest.raises(EngineError, match="second derivatives"):
        outer.gradient(penalty, pqc.trainable_variables[0])


def test_a_jacobian_is_a_first_derivative():
    pqc, data = layer(), convert_to_tensor(DATA)
    with tf.GradientTape(persistent=True) as tape:
        values = pqc(data)
    found = tape.jacobian(values, pqc.trainable_variables[0], experimental_use_pfor=False)
    assert found.shape == (3, 2, 2)


@pytest.mark.parametrize("shape", [(), (3, 2), (1, 3, 1)])
def test_circuits_of_another_shape_are_refused(shape):
    with pytest.raises(CircuitError, match=r"shape \(batch,\)"):
        layer()(tf.fill(shape, convert_to_tensor(DATA[:1])[0]))
