"""Circuits as text, for files that hold no bytes: Cirq's JSON, or the serialised form in base64."""

from __future__ import annotations

import base64
import binascii
import functools

import cirq

from qflock.circuits.tensors import deserialize, serialize
from qflock.circuits.trees import cirq_value
from qflock.errors import TensorFormatError


def circuit_to_text(circuit: cirq.AbstractCircuit | bytes) -> str:
    """A circuit, or its serialised form, as text that is read much faster than Cirq's JSON.

    Raises:
        TensorFormatError: If it cannot be serialised.

    Example:
        >>> circuit = cirq.Circuit(cirq.X(cirq.LineQubit(0)))
        >>> deserialize(circuit_from_text(circuit_to_text(circuit))) == circuit
        True
        >>> deserialize(circuit_from_text(cirq.to_json(circuit))) == circuit
        True
    """
    data = circuit if isinstance(circuit, bytes) else serialize(circuit)
    return base64.b64encode(data).decode("ascii")


@functools.lru_cache(maxsize=1 << 14)
def circuit_from_text(text: str) -> bytes:
    """The serialised circuit that a text stands for; nothing in the text is executed.

    Args:
        text: From `circuit_to_text`, or from `cirq.to_json`.

    Raises:
        TensorFormatError: If it is neither, is damaged, or is of a version that cannot be read.
    """
    if text.lstrip().startswith("{"):
        return _from_json(text)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise TensorFormatError(
            f"A circuit must be text from cirq.to_json or circuit_to_text, but starts with {text[:20]!r}"
        ) from None
    deserialize(data)
    return data


def _from_json(text: str) -> bytes:
    try:
        circuit = cirq_value(text)
    except TensorFormatError:
        raise
    except Exception as error:  # Cirq raises whatever the classes named in the text raise
        reason = " ".join(str(error).split())[:200]
        raise TensorFormatError(f"A circuit's JSON cannot be read by Cirq: {reason}") from None
    if not isinstance(circuit, cirq.AbstractCircuit):
        raise TensorFormatError(f"JSON must hold a circuit, but holds a {type(circuit).__name__}")
    return serialize(circuit)
