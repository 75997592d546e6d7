"""Examples to train on, in memory or behind anything that can hand out rows by index."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from qflock.errors import ConfigurationError, RunError


class Examples(Protocol):
    """Rows by index: what the loop needs of a data source."""

    def __len__(self) -> int:
        """How many examples there are."""
        ...

    def take(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, labels and sample weights `(rows,)` float32 of the examples at `indices`."""
        ...


@dataclass(frozen=True)
class ArrayExamples:
    """Examples in memory: inputs (numbers, or serialised circuits as bytes), labels and a weight each."""

    inputs: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows by index."""
        return self.inputs[indices], self.labels[indices], self.weights[indices]


@dataclass(frozen=True)
class Data:
    """What an experiment trains on and validates with."""

    train: Examples
    validation: Examples


def examples(
    inputs: Any,
    labels: Any,
    *,
    sample_weights: Any = None,
    class_weights: Mapping[float, float] | None = None,
) -> ArrayExamples:
    """Examples from arrays or tensors.

    Args:
        inputs: Array `(examples, ...)`, or a string tensor of circuits from `convert_to_tensor`.
        labels: Array `(examples, ...)`; one number each becomes a column `(examples, 1)`.
        sample_weights: Array `(examples,)` that multiplies each example's loss; 1 by default.
        class_weights: Weight by label, multiplied in; labels that are not named weigh 1.

    Raises:
        ConfigurationError: If the lengths differ, there are no examples, or a weight is not a finite number.

    Example:
        >>> examples([[0.0], [1.0]], [1, -1], class_weights={-1: 2.0}).weights.tolist()
        [1.0, 2.0]
    """
    inputs, labels = np.asarray(inputs), np.asarray(labels, dtype=np.float32)
    labels = labels[:, None] if labels.ndim == 1 else labels
    weights = np.ones(len(inputs)) if sample_weights is None else np.array(sample_weights, dtype=np.float64)
    if not len(inputs) or not len(inputs) == len(labels) == len(weights):
        raise ConfigurationError(
            "Arguments `inputs`, `labels` and `sample_weights` must have the same length of at least 1, "
            f"but have {len(inputs)}, {len(labels)} and {len(weights)}"
        )
    for label, weight in (class_weights or {}).items():
        weights = np.where((labels == label).reshape(len(labels), -1).all(axis=1), weights * weight, weights)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ConfigurationError(
            "Sample and class weights must be finite and not negative, but at least one is not"
        )
    return ArrayExamples(inputs, labels, weights.astype(np.float32))


def fingerprint(data: Data, rows: int = 1024) -> str:
    """A digest of the sizes and of up to `rows` evenly spread examples of both parts."""
    digest = hashlib.sha256()
    for part in (data.train, data.validation):
        picked = np.unique(np.linspace(0, len(part) - 1, min(rows, len(part))).astype(np.int64))
        digest.update(str(len(part)).encode())
        for array in part.take(picked):
            digest.update(b"".join(array.tolist()) if array.dtype.kind in "OS" else array.tobytes())
    return digest.hexdigest()


def pack(part: Examples) -> bytes:
    """Examples as the bytes of an `.npz` file that needs no unpickling; circuits become base64 text."""
    inputs, labels, weights = part.take(np.arange(len(part)))
    circuits = inputs.dtype.kind in "OS"
    stored = np.array([base64.b64encode(item) for item in inputs]) if circuits else inputs
    buffer = io.BytesIO()
    np.savez_compressed(buffer, inputs=stored, labels=labels, weights=weights, circuits=np.array(circuits))
    return buffer.getvalue()


def unpack(content: bytes, where: str) -> ArrayExamples:
    """Inverse of `pack`; `where` names the source in the error."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            inputs, labels, weights = stored["inputs"], stored["labels"], stored["weights"]
            if stored["circuits"]:
                inputs = np.array([base64.b64decode(item, validate=True) for item in inputs], dtype=object)
        return examples(inputs, labels, sample_weights=weights)
    except Exception as error:  # what zip, NumPy and base64 raise on damaged content has no common type
        raise RunError(f"{where} must hold stored examples, but cannot be read: {error!r}") from None
