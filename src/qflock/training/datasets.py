"""Examples from a `tf.data.Dataset`, which is read once, so that every epoch can have an order of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qflock.errors import ConfigurationError
from qflock.training.data import ArrayExamples, examples


def dataset_examples(
    dataset: Any, *, batched: bool = False, class_weights: Mapping[float, float] | None = None
) -> ArrayExamples:
    """The elements of a dataset, in memory.

    A dataset can only be read from its beginning, and exactly once per epoch in a seeded order needs rows by index:
    the elements are therefore read once, when the training begins. What does not fit into memory belongs into a file, see
    `file_examples`.

    Args:
        dataset: A finite `tf.data.Dataset` of `(inputs, labels)` or `(inputs, labels, sample weight)`; inputs may be
            a tuple. It must give the same elements in the same order on every worker.
        batched: Whether each element holds a batch rather than one example.
        class_weights: As for `examples`.

    Raises:
        ConfigurationError: If the dataset is endless or empty, or its elements have another form.

    Example:
        >>> import tensorflow as tf
        >>> pairs = tf.data.Dataset.from_tensor_slices(([[0.0], [1.0]], [1, -1]))
        >>> dataset_examples(pairs).labels.tolist()
        [[1.0], [-1.0]]
    """
    import tensorflow as tf

    if not isinstance(dataset, tf.data.Dataset):
        raise ConfigurationError(
            f"Argument `dataset` must be a tf.data.Dataset, but is a {type(dataset).__name__}"
        )
    if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise ConfigurationError("Argument `dataset` must end, but repeats for ever; leave out repeat()")
    form = dataset.element_spec
    if not isinstance(form, tuple) or len(form) not in (2, 3):
        raise ConfigurationError(
            "Argument `dataset` must have elements (inputs, labels) or (inputs, labels, sample weight), "
            f"but has {form}"
        )
    elements = list((dataset.unbatch() if batched else dataset).as_numpy_iterator())
    if not elements:
        raise ConfigurationError("Argument `dataset` must have at least one element, but has none")
    inputs, labels, *weights = zip(*elements, strict=True)
    columns = (
        tuple(map(_stacked, zip(*inputs, strict=True))) if isinstance(inputs[0], tuple) else _stacked(inputs)
    )
    sample_weights = np.array(weights[0]) if weights else None
    return examples(columns, _stacked(labels), sample_weights=sample_weights, class_weights=class_weights)


def _stacked(rows: Any) -> np.ndarray:
    if isinstance(rows[0], bytes):
        return np.array(rows, dtype=object)
    if len({np.shape(row) for row in rows}) > 1:
        raise ConfigurationError("Elements of a dataset must have one shape, but theirs differ; pad them")
    return np.array(rows)
