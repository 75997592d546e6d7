from __future__ import annotations

import cirq
import numpy as np
import pytest
import tensorflow as tf

from qflock.circuits.tensors import serialize
from qflock.cluster.strategy import refusal_inside
from qflock.errors import CircuitError
from qflock.training.data import examples

Q = cirq.LineQubit(0)
GOOD, BAD = cirq.Circuit(cirq.X(Q)), cirq.Circuit(cirq.depolarize(0.1)(Q))


def test_a_bad_circuit_among_the_data_is_named_by_its_row():
    inputs = np.array([serialize(GOOD), serialize(BAD)], dtype=object)
    with pytest.raises(CircuitError, match=r"row 1 \(from 0\) does not: .*depolarize.*noise channel"):
        examples(inputs, [1, -1])


def test_what_a_compiled_step_refuses_is_an_error_of_ours():
    def refuse(x):
        raise CircuitError("Operation X is a noise channel")

    with pytest.raises(tf.errors.OpError) as caught:
        tf.function(lambda: tf.numpy_function(refuse, [1.0], tf.float32))()
    found = refusal_inside(caught.value)
    assert isinstance(found, CircuitError) and str(found) == "Operation X is a noise channel"
    assert refusal_inside(ValueError("CircuitError: no")) is None
