"""Checks a manifest against generated client models: every key known, every value of its type, nothing required missing."""

from __future__ import annotations

import re
from typing import Any

import kubeflow.training.models as training
import kubernetes.client.models as core

PLAIN: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
    "object": object,
    "datetime": str,
}


def check(value: Any, kind: str, where: str = "") -> Any:
    """The value as an instance of the model `kind`; `ValueError` says where it does not fit."""
    if found := re.fullmatch(r"(dict\(str, |list\[)(.+)[)\]]", kind):
        if found[1] == "list[":
            _expect(isinstance(value, list), where, value, kind)
            return [check(each, found[2], f"{where}[{i}]") for i, each in enumerate(value)]
        _expect(isinstance(value, dict), where, value, kind)
        return {key: check(each, found[2], f"{where}.{key}") for key, each in value.items()}
    if kind in PLAIN:
        fits = isinstance(value, PLAIN[kind]) and not (kind == "int" and isinstance(value, bool))
        _expect(fits, where, value, kind)
        return value
    return _model(value, kind, where)


def _model(value: Any, kind: str, where: str) -> Any:
    model = getattr(training, kind, None) or getattr(core, kind)
    _expect(isinstance(value, dict), where, value, kind)
    attributes = {key: name for name, key in model.attribute_map.items()}
    if unknown := sorted(set(value) - set(attributes)):
        raise ValueError(f"{where or kind} must not have {', '.join(unknown)}")
    types = model.openapi_types
    filled = {
        attributes[key]: check(each, types[attributes[key]], f"{where}.{key}") for key, each in value.items()
    }
    return model(**filled)


def _expect(fits: bool, where: str, value: Any, kind: str) -> None:
    if not fits:
        raise ValueError(f"{where} must be {kind}, but is {value!r}")
