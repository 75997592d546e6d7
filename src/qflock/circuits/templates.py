"""Templates: operations without their qubits and without the numbers that change from circuit to circuit.

A template is JSON with slots for numbers that may change, so that circuits of one shape have equal templates.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import cirq
import sympy

from qflock.circuits.rows import NEWER_FAMILIES
from qflock.circuits.trees import cirq_text, cirq_value, expression_of, read_tags, tags_text, tree_of
from qflock.errors import TensorFormatError

Body: TypeAlias = Any
"""The JSON form of a template: see the functions below."""

Make: TypeAlias = Callable[[Sequence[float], Sequence[cirq.Qid]], cirq.Operation]
_MakeGate: TypeAlias = Callable[[Sequence[float]], cirq.Gate]

_NAMED: Mapping[str, cirq.Gate] = {
    "X": cirq.X, "Y": cirq.Y, "Z": cirq.Z, "I": cirq.I, "H": cirq.H, "S": cirq.S, "T": cirq.T,
    "CNOT": cirq.CNOT, "CZ": cirq.CZ, "SWAP": cirq.SWAP, "ISWAP": cirq.ISWAP,
    "CCX": cirq.CCX, "CCZ": cirq.CCZ, "CSWAP": cirq.CSWAP,
}  # fmt: skip
_NAMES = {id(gate): name for name, gate in _NAMED.items()}

# Gates that are made from keyword arguments: numbers, expressions, or named gates.
_CLASS_SET: frozenset[type[cirq.Gate]] = frozenset({
    cirq.Rx, cirq.Ry, cirq.Rz, cirq.XPowGate, cirq.YPowGate, cirq.ZPowGate, cirq.HPowGate,
    cirq.CXPowGate, cirq.CZPowGate, cirq.SwapPowGate, cirq.ISwapPowGate, cirq.XXPowGate, cirq.YYPowGate,
    cirq.ZZPowGate, cirq.MSGate, cirq.CCXPowGate, cirq.CCZPowGate, cirq.PhasedXPowGate, cirq.PhasedXZGate,
    cirq.PhasedISwapPowGate, cirq.FSimGate, cirq.PhasedFSimGate, cirq.PauliInteractionGate, *NEWER_FAMILIES,
})  # fmt: skip
_CLASSES: Mapping[str, type[cirq.Gate]] = {kind.__name__: kind for kind in _CLASS_SET}
_NEVER_SLOTS = ("global_shift", "dimension")

_ON_QUBITS = (cirq.GateOperation, cirq.ops.pauli_string.SingleQubitPauliStringGateOperation)


def split(operation: cirq.Operation, values: list[float]) -> tuple[Body, Sequence[cirq.Qid]]:
    """Splits an operation into a template, numbers and qubits.

    Args:
        operation: Any operation.
        values: The numbers are appended to it.

    Returns:
        The template, and the qubits; none where the template holds them.

    Raises:
        TensorFormatError: If the operation has no serialised form.
    """
    kind = type(operation)
    if kind in _ON_QUBITS:
        return _gate_body(operation.gate, values), operation.qubits
    if isinstance(operation, cirq.TaggedOperation):
        body, qubits = split(operation.sub_operation, values)
        return {"tagged": body, "tags": tags_text(operation.tags)}, qubits
    if isinstance(operation, cirq.ControlledOperation) and type(operation.sub_operation) in _ON_QUBITS:
        body = _gate_body(operation.sub_operation.gate, values)
        shape = [q.dimension for q in operation.controls]
        return {
            "controlled": body,
            "by": cirq_text(operation.control_values),
            "shape": shape,
        }, operation.qubits
    return {"operation": cirq_text(operation)}, ()


def _gate_body(gate: Any, values: list[float]) -> Body:
    name = _NAMES.get(id(gate))
    if name is not None:
        return name
    if type(gate) not in _CLASS_SET:
        return {"gate": _gate_text(gate)}
    fields: dict[str, Any] = {}
    for key, value in _arguments(gate).items():
        if isinstance(value, sympy.Basic):
            fields[key] = {"expression": tree_of(value)}
        elif isinstance(value, cirq.Gate):
            fields[key] = _NAMES[id(value)]
        elif key in _NEVER_SLOTS or isinstance(value, bool):
            fields[key] = value
        else:
            values.append(_number(value, gate))
            fields[key] = None
    return [type(gate).__name__, fields]


def _arguments(gate: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = gate._json_dict_()
    if isinstance(gate, cirq.PauliInteractionGate):
        arguments["exponent"] = gate.exponent  # which Cirq's JSON forgets
    return arguments


def _number(value: Any, gate: cirq.Gate) -> float:
    if not isinstance(value, numbers.Real):
        raise TensorFormatError(f"{gate!r} cannot be serialised: its parameter {value!r} is no real number")
    return float(value)


def _gate_text(gate: cirq.Gate) -> str:
    try:
        return _cached_text(gate)
    except TypeError:  # what cannot be hashed is not cached
        return cirq_text(gate)


_cached_text = functools.lru_cache(maxsize=1 << 12)(cirq_text)


def maker(body: Body) -> Make:
    """The function that makes a template's operation from its numbers and qubits."""
    if isinstance(body, dict):
        if "operation" in body:
            operation = _shared(body["operation"])
            return lambda values, qubits: operation
        if "tagged" in body:
            inner, tags = maker(body["tagged"]), read_tags(body["tags"])
            return lambda values, qubits: inner(values, qubits).with_tags(*tags)
    make = _gate_maker(body)
    return lambda values, qubits: make(values).on(*qubits)


def _gate_maker(body: Body) -> _MakeGate:
    if isinstance(body, str):
        gate = _NAMED[body]
        return lambda values: gate
    if isinstance(body, list):
        return _class_maker(*body)
    if "controlled" in body:
        inner, by, shape = _gate_maker(body["controlled"]), cirq_value(body["by"]), tuple(body["shape"])
        return lambda values: cirq.ControlledGate(
            inner(values), len(shape), control_values=by, control_qid_shape=shape
        )
    shared = _shared(body["gate"])
    return lambda values: shared


def _class_maker(name: str, fields: Mapping[str, Any]) -> _MakeGate:
    kind: Any = _CLASSES[name]
    slots = [key for key, value in fields.items() if value is None]
    rest = {key: _constant(value) for key, value in fields.items() if value is not None}
    return lambda values: kind(**dict(zip(slots, values, strict=True)), **rest)


def _constant(value: Any) -> Any:
    if isinstance(value, dict):
        return expression_of(value["expression"])
    return _NAMED[value] if isinstance(value, str) else value


_shared = functools.lru_cache(maxsize=1 << 12)(cirq_value)
