"""Which of Cirq's JSON types may stand in a serialised circuit: those whose reading evaluates no text.

Sympy evaluates strings as Python wherever it takes them for expressions, and Cirq's own reader passes it what it finds.
"""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Callable
from typing import Any

import cirq
import sympy
from cirq.ops.control_values import AbstractControlValues

from qflock.errors import TensorFormatError

_KINDS = (
    cirq.Gate, cirq.Operation, cirq.Qid, AbstractControlValues, cirq.Moment, cirq.AbstractCircuit, cirq.PauliSum,
    cirq.CliffordTableau, cirq.MeasurementKey, cirq.KeyCondition, cirq.VirtualTag, cirq.RoutingSwapTag, cirq.Duration,
    cirq.LinearDict,
)  # fmt: skip
# Anything but names, operators and brackets, or a bracket that would be a call.
_NO_FORMULA = re.compile(r"[^\w\s~&|^()]|[\w)]\s*\(")


def readable(cirq_type: str) -> Any:
    """What makes the object of a JSON type.

    Raises:
        TensorFormatError: If objects of that type are not read.
    """
    found = next(filter(None, (resolver(cirq_type) for resolver in cirq.DEFAULT_RESOLVERS)), None)
    if found is complex:
        return complex
    if found in _CHECKED:
        return _CHECKED[found]
    if inspect.isclass(found) and issubclass(found, _KINDS):
        return found
    raise TensorFormatError(
        f"A serialised circuit must hold gates, operations and qubits only, but holds a {cirq_type}"
    )


def _parameters(param_dict: Any, **rest: Any) -> cirq.ParamResolver:
    read: Callable[..., cirq.ParamResolver] = cirq.ParamResolver._from_json_dict_
    found = read(param_dict, **rest)
    for name, value in found.param_dict.items():
        if not isinstance(name, str | sympy.Symbol) or not isinstance(value, numbers.Number | sympy.Expr):
            raise TensorFormatError(
                f"A serialised circuit must give numbers and expressions to symbols, but gives {value!r} to {name!r}"
            )
    return found


def _formulas(boolean_strs: Any, **rest: Any) -> cirq.BooleanHamiltonianGate:
    """Cirq evaluated them up to version 1.6."""
    for formula in boolean_strs:
        if not isinstance(formula, str) or _NO_FORMULA.search(formula):
            raise TensorFormatError(
                f"A Boolean formula must be of names, operators and brackets, but is {formula!r}"
            )
    read: Callable[..., cirq.BooleanHamiltonianGate] = cirq.BooleanHamiltonianGate._from_json_dict_
    return read(boolean_strs=boolean_strs, **rest)


_CHECKED: dict[Any, Any] = {cirq.ParamResolver: _parameters, cirq.BooleanHamiltonianGate: _formulas}
