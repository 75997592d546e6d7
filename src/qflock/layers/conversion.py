"""Circuits and Pauli sums to string tensors and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cirq
import numpy as np
import tensorflow as tf

from qflock.circuits.tensors import deserialize, serialize
from qflock.errors import TensorFormatError

Convertible = (cirq.AbstractCircuit, cirq.PauliString, cirq.PauliSum)


def convert_to_tensor(items_to_convert: Sequence[Any]) -> tf.Tensor:
    """Serialises circuits or Pauli sums, nested lists of them included.

    Args:
        items_to_convert: A (nested, rectangular) list of `cirq.Circuit`, or of `cirq.PauliString` and `cirq.PauliSum`.

    Returns:
        A string tensor of the list's shape. The format is compact and carries a version.

    Raises:
        TensorFormatError: If an item is something else, or the list is ragged.

    Example:
        >>> import cirq
        >>> tensor = convert_to_tensor([cirq.Circuit(cirq.X(cirq.LineQubit(0)))])
        >>> print(from_tensor(tensor)[0])
        0: ───X───

    Source: the function of the same name in TensorFlow Quantum.
    """
    nested = _serialised(items_to_convert)
    try:
        return tf.constant(nested, dtype=tf.string)
    except ValueError:
        raise TensorFormatError(
            "Argument `items_to_convert` must be a rectangular list, but its rows differ in length; "
            "pad the shorter ones with cirq.Circuit()"
        ) from None


def from_tensor(tensor_to_convert: Any) -> Any:
    """The circuits or Pauli sums that a string tensor holds.

    Args:
        tensor_to_convert: A string tensor from `convert_to_tensor`, of any shape.

    Returns:
        A NumPy array of the tensor's shape that holds `cirq.Circuit` or `cirq.PauliSum` objects.

    Raises:
        TensorFormatError: If an element was not made by `convert_to_tensor`, or by a version that this one cannot read.
    """
    array: Any = np.asarray(tensor_to_convert, dtype=object)
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = deserialize(array[index])
    return result


def _serialised(item: Any) -> Any:
    if isinstance(item, (list, tuple, np.ndarray)):
        return [_serialised(part) for part in item]
    if not isinstance(item, Convertible):
        raise TensorFormatError(
            f"Argument `items_to_convert` must hold circuits or Pauli sums, but holds a {type(item).__name__}"
        )
    return serialize(item)
