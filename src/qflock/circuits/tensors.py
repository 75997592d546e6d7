"""Circuits and Pauli sums as bytes: compact, versioned, and read fast.

The bytes are a header `qflock<version>:<kind>`, a checksum, the numbers that may change from one circuit to
the next as doubles, and the shape as JSON: qubits and templates once each, then moments as lists of template
and qubit numbers. A shape is read once; after that, a circuit with other numbers costs only the operations
whose numbers changed. Nothing that is read is executed.
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import cirq

from qflock.circuits.shapes import Shape, qubit_content, read_qubit, read_shape, shape_of
from qflock.errors import TensorFormatError

VERSION = 1
MAGIC = b"qflock"
_HEADER = MAGIC + b"%d:" % VERSION
_FRAME = struct.Struct("<II")  # checksum of all that follows it, count of numbers


def serialize(item: cirq.AbstractCircuit | cirq.PauliString[Any] | cirq.PauliSum) -> bytes:
    """A circuit, Pauli string or Pauli sum as bytes.

    Args:
        item: What to serialise. A Pauli string comes back as a Pauli sum, a frozen circuit as a circuit.

    Returns:
        Bytes, equal for equal circuits with their moments and operations in equal order.

    Raises:
        TensorFormatError: If it is something else, or holds an operation that has no serialised form.

    Example:
        >>> circuit = cirq.Circuit(cirq.X(cirq.LineQubit(0)))
        >>> deserialize(serialize(circuit)) == circuit
        True
    """
    if isinstance(item, cirq.AbstractCircuit):
        return _framed(b"c", *shape_of(item))
    if isinstance(item, (cirq.PauliString, cirq.PauliSum)):
        return _framed(b"p", *_sum_content(cirq.PauliSum.wrap(item)))
    raise TensorFormatError(
        f"Only circuits, Pauli strings and Pauli sums can be serialised, but this is a {type(item).__name__}"
    )


def deserialize(data: bytes) -> cirq.Circuit | cirq.PauliSum:
    """The `cirq.Circuit` or `cirq.PauliSum` that bytes stand for.

    Args:
        data: What `serialize` returned.

    Returns:
        A new object; operations are shared between objects.

    Raises:
        TensorFormatError: If the bytes are something else, damaged, or of a version that cannot be read.

    Example:
        >>> print(deserialize(serialize(cirq.Z(cirq.LineQubit(0)) + 2)))
        1.000*Z(q(0))+2.000*I
    """
    if not isinstance(data, bytes):
        raise TensorFormatError(f"A serialised circuit must be bytes, but this is a {type(data).__name__}")
    return _parsed(data).copy()


@functools.lru_cache(maxsize=1 << 12)
def _parsed(data: bytes) -> cirq.Circuit | cirq.PauliSum:
    kind, numbers, text = _unframed(data)
    try:
        return _READERS[kind](text, numbers)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise TensorFormatError(f"A serialised circuit cannot be read: {error}".replace("\n", " ")) from None


def _framed(kind: bytes, content: Any, numbers: Sequence[float]) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    body = struct.pack(f"<{len(numbers)}d", *numbers) + text
    return _HEADER + kind + _FRAME.pack(zlib.crc32(kind + body), len(numbers)) + body


def _unframed(data: bytes) -> tuple[bytes, tuple[float, ...], bytes]:
    _check_header(data)
    start = len(_HEADER) + 1
    kind, body = data[start - 1 : start], data[start + _FRAME.size :]
    if len(data) >= start + _FRAME.size and kind in _READERS:
        checksum, count = _FRAME.unpack_from(data, start)
        if zlib.crc32(kind + body) == checksum and 8 * count <= len(body):
            return kind, struct.unpack_from(f"<{count}d", body), body[8 * count :]
    raise TensorFormatError(
        f"A serialised circuit is damaged: the checksum of its {len(data)} bytes does not fit; make it again "
        "with convert_to_tensor"
    )


def _check_header(data: bytes) -> None:
    if data.startswith(_HEADER):
        return
    version, colon, _ = data[len(MAGIC) : len(MAGIC) + 8].partition(b":")
    if data.startswith(MAGIC) and colon and version.isdigit():
        raise TensorFormatError(
            f"A serialised circuit must be of version {VERSION}, but is of version {int(version)}; "
            "make it again with this version's convert_to_tensor"
        )
    raise TensorFormatError(
        f"A serialised circuit must come from convert_to_tensor and start with {_HEADER!r}, but starts with "
        f"{data[:12]!r}"
    )


def _sum_content(total: cirq.PauliSum) -> tuple[list[Any], list[float]]:
    numbers: list[float] = []
    terms = []
    for string in total:
        coefficient = complex(string.coefficient)
        numbers.extend((coefficient.real, coefficient.imag))
        terms.append(["".join(map(str, string.values())), *[qubit_content(q) for q in string]])
    return terms, numbers


def _read_sum(text: bytes, numbers: tuple[float, ...]) -> cirq.PauliSum:
    total = cirq.PauliSum()
    parts = zip(numbers[::2], numbers[1::2], strict=True)
    for part, (letters, *qubits) in zip(parts, json.loads(text), strict=True):
        word = {read_qubit(q): letter for q, letter in zip(qubits, letters, strict=True)}
        total += cirq.PauliString(word, coefficient=complex(*part))
    return total


def _read_circuit(text: bytes, numbers: tuple[float, ...]) -> cirq.Circuit:
    return _shape(text).filled(numbers)


@functools.lru_cache(maxsize=1 << 10)
def _shape(text: bytes) -> Shape:
    return read_shape(json.loads(text))


_READERS: dict[bytes, Callable[[bytes, tuple[float, ...]], cirq.Circuit | cirq.PauliSum]] = {
    b"c": _read_circuit,
    b"p": _read_sum,
}
