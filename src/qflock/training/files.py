"""Examples from a data file, larger than memory or not: rows are read when a step needs them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from qflock.circuits.text import circuit_from_text
from qflock.errors import ConfigurationError, TensorFormatError
from qflock.training.data import Examples, Rows, as_labels, check_finite
from qflock.training.npz_columns import NpzColumns
from qflock.training.parquet_columns import ParquetColumns
from qflock.training.weights import example_weights


class Columns(Protocol):
    """What a file format has to offer: columns by name, rows by index."""

    path: Path

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        ...

    def count(self, name: str) -> int:
        """Rows of a column."""
        ...

    def read(self, name: str, indices: np.ndarray) -> np.ndarray:
        """Rows of a column by index."""
        ...

    def digest(self, names: tuple[str, ...]) -> bytes:
        """Differs when the columns differ."""
        ...


FORMATS = {".npz": NpzColumns, ".parquet": ParquetColumns}


def file_examples(
    path: str | os.PathLike[str],
    *,
    circuits: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] = "labels",
    sample_weights: str | None = None,
    class_weights: Mapping[float, float] | None = None,
) -> Examples:
    """Examples from an `.npz` or a `.parquet` file.

    Where a name is None, the column `circuits`, `features` or `weights` is used if there is one. With circuits and features, the model
    has these two inputs, in this order. Labels and weights are read and checked at once; circuits and features when a step
    needs them.

    Args:
        path: The file; its ending says what it is.
        circuits: Column of text from `cirq.to_json` or `circuit_to_text`.
        features: Column of numbers or of equally long rows of numbers, or several columns of numbers side by side.
        labels: The same for the labels.
        sample_weights: Column of one number per example.
        class_weights: As for `examples`.

    Raises:
        ConfigurationError: If the file or a column is missing, columns differ in length, or a value cannot be used.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.npz"
        >>> np.savez(path, features=np.eye(3), labels=[1, -1, 1])
        >>> inputs, labels, weights = file_examples(path).take(np.array([2, 0]))
        >>> inputs.tolist(), labels.tolist()
        ([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [[1.0], [1.0]])
    """
    columns = _opened(Path(path))
    text = _optional(columns, circuits, "circuits")
    numbers = _as_names(features) if features is not None else _as_names(_optional(columns, None, "features"))
    weights = _optional(columns, sample_weights, "weights")
    targets = _as_names(labels)
    if text is None and not numbers:
        raise ConfigurationError(
            f"{columns.path} must have a column 'circuits' or 'features', or its name must be given, "
            f"but the file has {_listed(columns)}"
        )
    used = (*((text,) if text else ()), *numbers, *targets, *((weights,) if weights else ()))
    rows = _common_length(columns, used)
    every = np.arange(rows)
    known = as_labels(_side_by_side(columns, targets, every))
    given = columns.read(weights, every) if weights else None
    try:
        weighed = example_weights(known, given, class_weights)
    except ConfigurationError as error:
        raise ConfigurationError(f"{columns.path}: {error}") from None
    return _FileExamples(columns, text, numbers, known, weighed, used)


@dataclass(frozen=True)
class _FileExamples:
    columns: Columns
    circuits: str | None
    features: tuple[str, ...]
    labels: np.ndarray
    weights: np.ndarray
    used: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: np.ndarray) -> Rows:
        parts = []
        if self.circuits:
            parts.append(_circuits(self.columns, self.circuits, indices))
        if self.features:
            parts.append(_side_by_side(self.columns, self.features, indices).astype(np.float32))
        inputs = parts[0] if len(parts) == 1 else tuple(parts)
        return inputs, self.labels[indices], self.weights[indices]

    def digest(self) -> bytes:
        digest = hashlib.sha256(self.columns.digest(self.used))
        digest.update(self.labels.tobytes() + self.weights.tobytes())
        return digest.digest()


def _opened(path: Path) -> Columns:
    if path.suffix not in FORMATS:
        raise ConfigurationError(f"A data file must end in {' or '.join(FORMATS)}, but is {path}")
    if not path.is_file():
        raise ConfigurationError(
            f"The data file {path} does not exist on this machine (seen from {Path.cwd()})"
        )
    columns: Columns = FORMATS[path.suffix](path)
    return columns


def _optional(columns: Columns, name: str | None, default: str) -> str | None:
    return name if name is not None else default if default in columns.names else None


def _as_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _listed(columns: Columns) -> str:
    return ", ".join(columns.names) or "none"


def _common_length(columns: Columns, names: tuple[str, ...]) -> int:
    for name in names:
        if name not in columns.names:
            raise ConfigurationError(
                f"{columns.path} must have a column {name!r}, but has {_listed(columns)}"
            )
    lengths = {name: columns.count(name) for name in names}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ConfigurationError(
            f"The columns of {columns.path} must have the same length of at least 1, but have: {shown}"
        )
    return next(iter(lengths.values()))


def _side_by_side(columns: Columns, names: tuple[str, ...], indices: np.ndarray) -> np.ndarray:
    """Numbers of one column, or of several as the columns of a matrix."""
    arrays = [_numbers(columns, name, indices) for name in names]
    if len(arrays) == 1:
        return arrays[0]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1:
            raise ConfigurationError(
                f"Column {name!r} of {columns.path} must hold one number per row to stand beside others, "
                f"but has rows of shape {array.shape[1:]}"
            )
    return np.stack(arrays, axis=1)


def _numbers(columns: Columns, name: str, indices: np.ndarray) -> np.ndarray:
    array = columns.read(name, indices)
    if array.dtype.kind not in "biuf":
        raise ConfigurationError(
            f"Column {name!r} of {columns.path} must hold numbers, but holds values of type {array.dtype}"
        )
    check_finite(f"Column {name!r} of {columns.path}", array, indices)
    return array


def _circuits(columns: Columns, name: str, indices: np.ndarray) -> np.ndarray:
    texts = columns.read(name, indices)
    circuits = np.empty(len(texts), dtype=object)
    for place, text in enumerate(texts.tolist()):
        try:
            circuits[place] = circuit_from_text(text.decode() if isinstance(text, bytes) else str(text))
        except (TensorFormatError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"Column {name!r} of {columns.path}, row {indices[place]} (from 0): {error}"
            ) from None
    return circuits
