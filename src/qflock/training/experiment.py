"""What is trained: model, data, optimiser, loss and metrics as one object."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qflock.errors import ConfigurationError
from qflock.training.data import Data


@dataclass(frozen=True)
class Experiment:
    """A model and how to train it; each part is built anew on every worker.

    Args:
        model: Returns a `keras.Model`.
        data: Takes the seed of the run, returns its `Data`. Must give the same on every worker.
        optimizer: Takes the learning rate of the run, returns a Keras optimiser.
        loss: Name of a Keras loss, a `keras.losses.Loss`, or a function of labels and outputs that gives one value per
            example.
        metrics: Names of Keras metrics, functions of labels and outputs, or functions that return a `keras.Metric`.
            Their state must be additive over examples, as that of nearly all Keras metrics is.
        callbacks: Returns Keras callbacks; every worker runs them.
        name: Shown in lists and titles.
    """

    model: Callable[[], Any]
    data: Callable[[int], Data]
    optimizer: Callable[[float], Any]
    loss: Any = "mean_squared_error"
    metrics: tuple[Any, ...] = ()
    callbacks: Callable[[], Sequence[Any]] = tuple
    name: str = "experiment"


def sign_accuracy(labels: Any, outputs: Any) -> Any:
    """Share of outputs whose sign is that of their label, for labels +1 and -1."""
    import keras

    return keras.ops.mean(keras.ops.cast(labels * outputs > 0, "float32"), axis=-1)


def load_experiment(reference: str) -> Experiment:
    """The experiment that `path/to/file.py:name` names. The file is executed.

    Raises:
        ConfigurationError: If there is no such file or name, the file fails, or the name is not an `Experiment`.
    """
    path, name = split_reference(reference)
    module_name = f"qflock_user_{path.stem}"
    specification = importlib.util.spec_from_file_location(module_name, path)
    if specification is None or specification.loader is None:
        raise ConfigurationError(f"{path} must be a Python file, but cannot be loaded as one")
    module = importlib.util.module_from_spec(specification)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.parent))
    specification.loader.exec_module(module)
    found = getattr(module, name, None)
    if not isinstance(found, Experiment):
        known = [key for key, value in vars(module).items() if isinstance(value, Experiment)]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigurationError(
            f"{path} must define an Experiment named {name!r}, but has {', '.join(known) or 'none'}{hint}"
        )
    return found


def split_reference(reference: str) -> tuple[Path, str]:
    """Path and name of `path/to/file.py:name`; checks that the file exists."""
    text, colon, name = reference.rpartition(":")
    if not colon or not text.endswith(".py") or not name.isidentifier():
        raise ConfigurationError(
            f"Argument `what` must be 'qcnn' or 'path/to/file.py:name', but is {reference!r}"
        )
    path = Path(text).resolve()
    if not path.is_file():
        raise ConfigurationError(f"Argument `what` names the file {path}, but there is no such file")
    return path, name
