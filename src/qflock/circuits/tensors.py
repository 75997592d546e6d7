"""Circuits and Pauli sums as bytes: compact, versioned, and parsed once.

The format is JSON behind a header. Gates and qubits are listed once each and referred to by number; moments are lists of
operations. What a table entry cannot express is stored in Cirq's own JSON.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable
from typing import Any

import cirq

from qflock.errors import TensorFormatError

VERSION = 1
_MAGIC = b"qflock"
_HEADER = _MAGIC + b"%d:" % VERSION
_COMPRESS_ABOVE = 1 << 12


def serialize(item: cirq.AbstractCircuit | cirq.PauliString | cirq.PauliSum) -> bytes:
    """A circuit, Pauli string or Pauli sum as bytes.

    Args:
        item: What to serialise. A Pauli string comes back as a Pauli sum.

    Raises:
        TensorFormatError: If it is something else.

    Example:
        >>> circuit = cirq.Circuit(cirq.X(cirq.LineQubit(0)))
        >>> deserialize(serialize(circuit)) == circuit
        True
    """
    if isinstance(item, cirq.AbstractCircuit):
        content = _circuit_content(item)
    elif isinstance(item, (cirq.PauliString, cirq.PauliSum)):
        content = {"sum": cirq.to_json(cirq.PauliSum.wrap(item), indent=None)}
    else:
        raise TensorFormatError(
            f"Only circuits and Pauli sums can be serialised, but this is a {type(item).__name__}"
        )
    text = json.dumps(content, separators=(",", ":")).encode()
    if len(text) > _COMPRESS_ABOVE:
        return _HEADER + b"z" + zlib.compress(text, 6)
    return _HEADER + b"j" + text


def deserialize(data: object) -> Any:
    """The `cirq.Circuit` or `cirq.PauliSum` that bytes stand for.

    Args:
        data: What `serialize` returned.

    Returns:
        The object, shared by all calls with equal bytes: do not change it.

    Raises:
        TensorFormatError: If the bytes are something else, or of a version that this one cannot read.
    """
    if isinstance(data, str):
        data = data.encode()
    if not isinstance(data, bytes):
        raise TensorFormatError(f"A serialised circuit must be bytes, but this is a {type(data).__name__}")
    return _parsed(data)


@functools.lru_cache(maxsize=1 << 12)
def _parsed(data: bytes) -> Any:
    _check_header(data)
    body, kind = data[len(_HEADER) + 1 :], data[len(_HEADER) : len(_HEADER) + 1]
    try:
        content = json.loads(zlib.decompress(body) if kind == b"z" else body)
        if "sum" in content:
            return cirq.read_json(json_text=content["sum"])
        return _circuit(content)
    except (ValueError, KeyError, IndexError, TypeError, zlib.error) as error:
        raise TensorFormatError(f"A serialised circuit is damaged: {error}") from None


def _check_header(data: bytes) -> None:
    if data.startswith(_HEADER):
        return
    version, colon, _ = data[len(_MAGIC) :].partition(b":")
    if data.startswith(_MAGIC) and colon and version.isdigit():
        raise TensorFormatError(
            f"A serialised circuit must be of version {VERSION}, but is of version {int(version)}; "
            "make it again with this version's convert_to_tensor"
        )
    raise TensorFormatError(
        f"A serialised circuit must come from convert_to_tensor, but starts with {data[:16]!r}"
    )


def _circuit_content(circuit: cirq.AbstractCircuit) -> dict[str, Any]:
    qubits: dict[Any, int] = {}
    gates: dict[str, int] = {}
    moments = []
    for moment in circuit:
        row: list[Any] = []
        for operation in moment:
            if isinstance(operation, cirq.GateOperation):
                gate = gates.setdefault(_gate_text(operation.gate), len(gates))
                row.append([gate, *[qubits.setdefault(q, len(qubits)) for q in operation.qubits]])
            else:
                row.append(cirq.to_json(operation, indent=None))
        moments.append(row)
    return {"q": [_qubit_content(q) for q in qubits], "g": list(gates), "m": moments}


def _circuit(content: dict[str, Any]) -> cirq.Circuit:
    qubits = [_qubit(item) for item in content["q"]]
    gates = [_gate(text) for text in content["g"]]
    moments = []
    for row in content["m"]:
        operations = [
            cirq.read_json(json_text=item)
            if isinstance(item, str)
            else cirq.GateOperation(gates[item[0]], [qubits[k] for k in item[1:]])
            for item in row
        ]
        moments.append(cirq.Moment(operations))
    return cirq.Circuit(moments)


def _qubit_content(qubit: cirq.Qid) -> Any:
    if type(qubit) is cirq.LineQubit:
        return qubit.x
    if type(qubit) is cirq.GridQubit:
        return [qubit.row, qubit.col]
    return cirq.to_json(qubit, indent=None)


def _qubit(content: Any) -> cirq.Qid:
    if isinstance(content, int):
        return cirq.LineQubit(content)
    if isinstance(content, list):
        return cirq.GridQubit(*content)
    return _read_shared(content)


# Numbers of the commonest gates are written directly; everything else as Cirq's JSON.
_SHORT: dict[type, Callable[[Any], list[Any]]] = {
    cirq.Rx: lambda gate: ["rx", gate._rads],
    cirq.Ry: lambda gate: ["ry", gate._rads],
    cirq.Rz: lambda gate: ["rz", gate._rads],
}
_LONG: dict[str, Callable[[float], cirq.Gate]] = {"rx": cirq.rx, "ry": cirq.ry, "rz": cirq.rz}


def _gate_text(gate: cirq.Gate) -> str:
    short = _SHORT.get(type(gate))
    if short is not None and not cirq.is_parameterized(gate):
        name, angle = short(gate)
        return json.dumps([name, float(angle)])
    return _cirq_text(gate)


@functools.lru_cache(maxsize=1 << 12)
def _cirq_text(gate: cirq.Gate) -> str:
    return cirq.to_json(gate, indent=None)


@functools.lru_cache(maxsize=1 << 14)
def _gate(text: str) -> cirq.Gate:
    content = json.loads(text)
    if isinstance(content, list):
        return _LONG[content[0]](content[1])
    gate: cirq.Gate = cirq.read_json(json_text=text)
    return gate


@functools.lru_cache(maxsize=1 << 14)
def _read_shared(text: str) -> Any:
    return cirq.read_json(json_text=text)
