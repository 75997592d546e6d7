"""The weight of each example, from sample and class weights, with Keras' meaning: it multiplies the example's loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qflock.errors import ConfigurationError


def example_weights(
    labels: np.ndarray, sample_weights: Any, class_weights: Mapping[float, float] | None
) -> np.ndarray:
    """Weights `(examples,)` float32; the loss of a step is their weighted sum, divided by the number of examples.

    Args:
        labels: `(examples, ...)`. The class is the label itself, or with several columns the place of the largest.
        sample_weights: `(examples,)`, or None for 1 each.
        class_weights: Weight by class, multiplied in; classes that are not named weigh 1.

    Raises:
        ConfigurationError: If the lengths differ, or a weight is negative or not a finite number.

    Example:
        >>> example_weights(np.array([[0, 1], [1, 0]]), [1.0, 2.0], {1: 3.0}).tolist()
        [3.0, 2.0]
    """
    given = _numbers("sample_weights", np.ones(len(labels)) if sample_weights is None else sample_weights)
    if given.shape != (len(labels),):
        raise ConfigurationError(
            f"Argument `sample_weights` must have one number per example, shape {(len(labels),)}, "
            f"but has shape {given.shape}"
        )
    weights = given.copy()
    classes = _classes(labels)
    for name, weight in (class_weights or {}).items():
        (factor,) = _numbers("class_weights", [weight])
        weights[classes == name] *= factor
    return weights.astype(np.float32)


def _classes(labels: np.ndarray) -> np.ndarray:
    rows = labels.reshape(len(labels), -1)
    return rows[:, 0] if rows.shape[1] == 1 else np.argmax(rows, axis=1)


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"Argument `{name}` must hold numbers, but does not: {error}") from None
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise ConfigurationError(
            f"Argument `{name}` must hold finite numbers of at least 0, but has {numbers.flat[wrong[0]]} "
            f"at position {wrong[0]}"
        )
    return numbers
