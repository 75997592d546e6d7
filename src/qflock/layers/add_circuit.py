"""Joining circuits in a model: `AddCircuit`."""

from __future__ import annotations

import base64
import functools
from typing import Any

import cirq
import keras
import numpy as np
import tensorflow as tf

from qflock.circuits.tensors import deserialize, serialize
from qflock.errors import TensorFormatError


@keras.saving.register_keras_serializable(package="qflock")
class AddCircuit(keras.layers.Layer):
    """Appends or prepends circuits to a batch of circuits.

    Called with `inputs` (a string tensor `(batch,)`, a circuit or a list of circuits) and exactly one of `append` and
    `prepend` (a circuit for the whole batch, or as many as there are inputs). Returns a string tensor `(batch,)`.

    Raises:
        TensorFormatError: If neither or both of `append` and `prepend` are given, or the numbers of circuits differ.

    Example:
        >>> import cirq
        >>> from qflock.layers import AddCircuit, from_tensor
        >>> q = cirq.LineQubit(0)
        >>> joined = AddCircuit()(cirq.Circuit(cirq.X(q)), append=cirq.Circuit(cirq.H(q)))
        >>> print(from_tensor(joined)[0])
        0: ───X───H───

    Source: the layer of the same name in TensorFlow Quantum.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)

    def __call__(self, inputs: Any, *, append: Any = None, prepend: Any = None) -> Any:
        """Converts circuits to tensors before Keras looks at the arguments."""
        if (append is None) == (prepend is None):
            raise TensorFormatError("Exactly one of the arguments `append` and `prepend` must be given")
        return super().__call__(_as_tensor(inputs), append=_as_text(append), prepend=_as_text(prepend))

    def call(self, inputs: Any, append: Any = None, prepend: Any = None) -> Any:
        """Joins string tensors."""
        added = _from_text(append if prepend is None else prepend)
        first, second = (inputs, added) if prepend is None else (added, inputs)
        joined = tf.numpy_function(_join_all, [first, second], tf.string)
        joined.set_shape([None])
        return joined

    def compute_output_spec(self, inputs: Any, append: Any = None, prepend: Any = None) -> Any:
        """A string tensor `(batch,)`."""
        return keras.KerasTensor((inputs.shape[0],), dtype="string")


def _as_tensor(circuits: Any) -> Any:
    """A single circuit becomes a tensor of one element, which stands for every element of a batch."""
    if circuits is None or tf.is_tensor(circuits) or isinstance(circuits, keras.KerasTensor):
        return circuits
    if isinstance(circuits, cirq.AbstractCircuit):
        circuits = [circuits]
    return tf.constant([serialize(circuit) for circuit in circuits], dtype=tf.string)


def _as_text(circuits: Any) -> Any:
    """What is known already is kept as text, since a saved model holds its constants as such, and gives them back."""
    if isinstance(circuits, list | tuple) and all(isinstance(item, str) for item in circuits):
        return circuits
    tensor = _as_tensor(circuits)
    if tensor is None or isinstance(tensor, keras.KerasTensor) or not hasattr(tensor, "numpy"):
        return tensor
    return [base64.b64encode(item).decode("ascii") for item in np.ravel(tensor.numpy())]


def _from_text(circuits: Any) -> Any:
    if not isinstance(circuits, list | tuple):
        return circuits
    return tf.constant([base64.b64decode(text) for text in circuits], dtype=tf.string)


def _join_all(first: Any, second: Any) -> Any:
    sizes = {len(first), len(second)} - {1}
    if len(sizes) > 1:
        raise TensorFormatError(
            f"AddCircuit must join as many circuits as it is given, or one, but got {len(first)} and {len(second)}"
        )
    size = sizes.pop() if sizes else 1
    left, right = np.broadcast_to(first, size), np.broadcast_to(second, size)
    return np.array([_join(a, b) for a, b in zip(left, right, strict=True)], dtype=object)


@functools.lru_cache(maxsize=1 << 14)
def _join(first: bytes, second: bytes) -> bytes:
    return serialize(cirq.Circuit(deserialize(first)) + cirq.Circuit(deserialize(second)))
