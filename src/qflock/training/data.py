"""Examples to train on, in memory or behind anything that can hand out rows by index."""

from __future__ import annotations

import base64
import hashlib
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import cirq
import numpy as np

from qflock.circuits.gates import lower_circuit
from qflock.circuits.tensors import MAGIC, deserialize
from qflock.errors import ConfigurationError, QflockError, RunError
from qflock.training.weights import example_weights

Inputs: TypeAlias = "np.ndarray | tuple[np.ndarray, ...]"
Rows: TypeAlias = "tuple[Inputs, np.ndarray, np.ndarray]"


class Examples(Protocol):
    """Rows by index: what the loop needs of a data source."""

    def __len__(self) -> int:
        """How many examples there are."""
        ...

    def take(self, indices: np.ndarray) -> Rows:
        """Inputs, labels and sample weights `(rows,)` float32 of the examples at `indices`.

        The inputs are one array, or a tuple of arrays for a model with several inputs.
        """
        ...

    def digest(self) -> bytes:
        """Differs, as far as can be told in a moment, when the examples differ."""
        ...


@dataclass(frozen=True)
class ArrayExamples:
    """Examples in memory: inputs (numbers, or serialised circuits as bytes), labels and a weight each."""

    inputs: Inputs
    labels: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: np.ndarray) -> Rows:
        """Rows by index."""
        inputs = self.inputs
        rows = tuple(i[indices] for i in inputs) if isinstance(inputs, tuple) else inputs[indices]
        return rows, self.labels[indices], self.weights[indices]

    def digest(self) -> bytes:
        """Of the size and of up to `_DIGEST_ROWS` evenly spread examples."""
        picked = np.unique(np.linspace(0, len(self) - 1, min(_DIGEST_ROWS, len(self))).astype(np.int64))
        digest = hashlib.sha256(str(len(self)).encode())
        inputs, labels, weights = self.take(picked)
        for array in (*as_tuple(inputs), labels, weights):
            digest.update(b"".join(array.tolist()) if array.dtype.kind in "OS" else array.tobytes())
        return digest.digest()


@dataclass(frozen=True)
class Data:
    """What an experiment trains on and validates with.

    Args:
        train: From `examples`, `file_examples` or `dataset_examples`, or anything with the same three methods.
        validation: The same. A copy is stored in the run, so these have to fit into memory.
    """

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
        inputs: Array `(examples, ...)`, or a string tensor of circuits from `convert_to_tensor`; a tuple of them for a
            model with several inputs.
        labels: Array `(examples, ...)`; one number each becomes a column `(examples, 1)`.
        sample_weights: Array `(examples,)` that multiplies each example's loss; 1 by default.
        class_weights: Weight by label, multiplied in; labels that are not named weigh 1. With several columns of
            labels (one-hot) the class is the place of the largest one.

    Raises:
        ConfigurationError: If the lengths differ, rows are ragged, there are no examples, an input or label is not a
            finite number, or a weight is negative.

    Example:
        >>> examples([[0.0], [1.0]], [1, -1], class_weights={-1: 2.0}).weights.tolist()
        [1.0, 2.0]
    """
    several = isinstance(inputs, tuple)
    arrays = tuple(_array("inputs", part) for part in (inputs if several else (inputs,)))
    targets = as_labels(_array("labels", labels))
    if not len(targets) or any(len(array) != len(targets) for array in arrays):
        lengths = ", ".join(str(len(array)) for array in arrays)
        raise ConfigurationError(
            f"Arguments `inputs` and `labels` must have the same length of at least 1, but have {lengths} and {len(targets)}"
        )
    for array in arrays:
        check_finite("Argument `inputs`", array)
    check_finite("Argument `labels`", targets)
    for array in arrays:
        check_circuits("Argument `inputs`", array)
    return ArrayExamples(
        arrays if several else arrays[0], targets, example_weights(targets, sample_weights, class_weights)
    )


def as_labels(labels: np.ndarray) -> np.ndarray:
    """Labels as float32 with at least two axes."""
    try:
        numbers = labels.astype(np.float32)
    except (ValueError, TypeError):
        raise ConfigurationError(f"Labels must be numbers, but are of type {labels.dtype}") from None
    return numbers[:, None] if numbers.ndim == 1 else numbers


def as_tuple(inputs: Inputs) -> tuple[np.ndarray, ...]:
    """The inputs as a tuple, also where there is one only."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def check_finite(what: str, array: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Raises `ConfigurationError` that names the first row with NaN or infinity; `rows` are the rows' numbers."""
    if array.dtype.kind not in "fc":
        return
    wrong = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(axis=1))
    if len(wrong):
        row = wrong[0] if rows is None else rows[wrong[0]]
        raise ConfigurationError(
            f"{what} must hold finite numbers, but row {row} (from 0) holds NaN or infinity; remove or replace it"
        )


def check_circuits(what: str, array: np.ndarray) -> None:
    """Raises what evaluating a circuit would raise, naming its row. Of long data, as many are checked as a second allows."""
    end = time.monotonic() + _CHECK_SECONDS
    for row, item in enumerate(array.ravel() if array.dtype == object else ()):
        if not item.startswith(MAGIC):  # other bytes are for the model to know
            continue
        try:
            circuit = deserialize(item)
            if isinstance(circuit, cirq.AbstractCircuit):
                lower_circuit(circuit)
        except QflockError as error:
            raise type(error)(
                f"{what} must hold circuits, but row {row} (from 0) does not: {error}"
            ) from None
        if time.monotonic() > end:
            return


def fingerprint(data: Data) -> str:
    """A digest of both parts."""
    parts = (len(data.train), data.train.digest(), len(data.validation), data.validation.digest())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def pack(part: Examples) -> bytes:
    """Examples as the bytes of an `.npz` file that needs no unpickling; circuits become base64 text."""
    inputs, labels, weights = part.take(np.arange(len(part)))
    named: dict[str, Any] = {"labels": labels, "weights": weights}
    for place, array in enumerate(as_tuple(inputs)):
        circuits = array.dtype.kind in "OS"
        kind = _CIRCUITS if circuits else _NUMBERS
        named[f"{kind}{place}"] = np.array([base64.b64encode(item) for item in array]) if circuits else array
    buffer = io.BytesIO()
    np.savez_compressed(buffer, several=np.array(isinstance(inputs, tuple)), **named)
    return buffer.getvalue()


def unpack(content: bytes, where: str) -> ArrayExamples:
    """Inverse of `pack`; `where` names the source in the error."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            labels, weights, several = stored["labels"], stored["weights"], bool(stored["several"])
            inputs = tuple(_unpacked(stored, place) for place in range(len(stored.files) - 3))
            return examples(inputs if several else inputs[0], labels, sample_weights=weights)
    except Exception as error:  # what zip, NumPy and base64 raise on damaged content has no common type
        raise RunError(f"{where} must hold stored examples, but cannot be read: {error!r}") from None


def _unpacked(stored: Any, place: int) -> np.ndarray:
    if f"{_NUMBERS}{place}" in stored:
        return np.asarray(stored[f"{_NUMBERS}{place}"])
    return np.array(
        [base64.b64decode(item, validate=True) for item in stored[f"{_CIRCUITS}{place}"]], dtype=object
    )


def _array(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        raise ConfigurationError(
            f"Argument `{name}` must be a rectangular array, but its rows differ in length"
        ) from None
    if array.dtype.kind == "S":  # which drops zeros at the end
        array = np.array(values, dtype=object)
    circuits = array.dtype == object and all(isinstance(item, bytes) for item in array.flat)
    if array.ndim == 0 or not (circuits or array.dtype.kind in "biuf"):
        raise ConfigurationError(
            f"Argument `{name}` must be an array of numbers or a string tensor from convert_to_tensor, "
            f"but has type {array.dtype} and shape {array.shape}"
        )
    return array


_DIGEST_ROWS = 1024
_CHECK_SECONDS = 1.0
_CIRCUITS, _NUMBERS = "circuits", "numbers"
