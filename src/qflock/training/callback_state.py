"""What Keras callbacks remember, stored so that a resumed run stops and slows down where an undisturbed one does.

Only numbers, None, arrays, and lists and dictionaries of them are stored, as JSON, and only they are put back: a stored
state can make a callback count wrongly, but not write to another place or run anything.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_NOT_STATE = frozenset({"_model", "_params"})
_ARRAY = "array"
log = logging.getLogger("qflock")


class CallbackState:
    """What callbacks remember: what differs from what they held when this was made, after `on_train_begin`.

    Args:
        model: Whose `stop_training` the callbacks set.
        callbacks: Keras callbacks.

    Example:
        >>> import keras
        >>> stopper = keras.callbacks.EarlyStopping()
        >>> state = CallbackState(keras.Sequential(), [stopper])
        >>> stopper.wait = 3
        >>> state.pack()
        b'{"stop": false, "callbacks": [["EarlyStopping", {"wait": 3}]]}'
    """

    def __init__(self, model: Any, callbacks: Sequence[Any]) -> None:
        self._model, self._callbacks = model, list(callbacks)
        self._before = [_plain_attributes(callback) for callback in self._callbacks]

    def pack(self) -> bytes:
        """The state as JSON."""
        states = [
            (type(callback).__name__, _changes(before, _plain_attributes(callback)))
            for callback, before in zip(self._callbacks, self._before, strict=True)
        ]
        return json.dumps(
            {"stop": bool(getattr(self._model, "stop_training", False)), "callbacks": states}
        ).encode()

    def restore(self, packed: bytes) -> None:
        """Puts a state back; that of other callbacks is left out with a warning."""
        try:
            stored = json.loads(packed)
            names = [str(name) for name, _ in stored["callbacks"]]
            states = [
                {name: _read(value) for name, value in state.items()} for _, state in stored["callbacks"]
            ]
            stop = bool(stored["stop"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            log.warning("The stored state of the callbacks cannot be read and is left out: %r", error)
            return
        here = [type(callback).__name__ for callback in self._callbacks]
        if names != here:
            was, now = ", ".join(names) or "none", ", ".join(here) or "none"
            log.warning("The callbacks start anew: the run was stored with %s, but now has %s", was, now)
            return
        self._model.stop_training = stop
        for callback, state, before in zip(self._callbacks, states, self._before, strict=True):
            for name, value in state.items():
                if name in before or not hasattr(callback, name):  # neither a method nor what is never stored
                    setattr(callback, name, value)


def _plain_attributes(callback: Any) -> dict[str, Any]:
    """Attributes in the form that they are stored in; others are left out."""
    plain = {}
    for name, value in vars(callback).items():
        if name not in _NOT_STATE:
            try:
                plain[name] = _written(value)
            except TypeError:
                continue
    return plain


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in now.items() if name not in before or value != before[name]}


def _written(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_ARRAY: [value.dtype.str, list(value.shape), data]}
    if isinstance(value, (list, tuple)):
        return [_written(item) for item in value]
    if isinstance(value, dict) and _ARRAY not in value and all(isinstance(key, str) for key in value):
        return {key: _written(item) for key, item in value.items()}
    raise TypeError(f"not a plain value: {type(value)}")


def _read(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, list):
        return [_read(item) for item in value]
    if isinstance(value, dict) and _ARRAY in value:
        kind, shape, data = value[_ARRAY]
        dtype = np.dtype(str(kind))
        if dtype.kind not in "biuf":
            raise ValueError(f"arrays must hold numbers, but one holds {dtype}")
        return np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    raise ValueError(f"a {type(value).__name__} is never put back")
