"""qflock trains quantum machine-learning models, on one machine or many.

Names are loaded when they are first used, so that importing the package costs little and loads no TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qflock.engine.expectation import expectation as expectation
    from qflock.engine.reductions import Reductions as Reductions
    from qflock.engine.simulator import Simulator as Simulator
    from qflock.training.tensorboard import TensorBoard as TensorBoard

_HOME = {
    "Reductions": "qflock.engine.reductions",
    "Simulator": "qflock.engine.simulator",
    "TensorBoard": "qflock.training.tensorboard",
    "expectation": "qflock.engine.expectation",
}

__all__ = ["Reductions", "Simulator", "TensorBoard", "expectation"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'qflock' has no attribute {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
