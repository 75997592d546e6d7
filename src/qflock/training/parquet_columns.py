"""Columns of a Parquet file: row groups are read when one of their rows is asked for, and kept within a budget."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from qflock.errors import ConfigurationError

BUDGET = 256 * 2**20


class ParquetColumns:
    """Columns by name; a list column with as many values in each row is an array with a second axis.

    Args:
        path: The file.
        budget: Bytes of decoded columns of row groups that are kept in memory; the one in use is kept in any case.

    Raises:
        ConfigurationError: If it is not a Parquet file, or the package pyarrow is missing.
    """

    def __init__(self, path: Path, budget: int = BUDGET) -> None:
        self.path, self._budget = path, budget
        parquet = _parquet()
        try:
            self._file: Any = parquet.ParquetFile(path, memory_map=True)
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{path} must be a Parquet file, but cannot be read: {' '.join(str(error).split())[:200]}"
            ) from None
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._ends = np.cumsum([0, *sizes])
        self._kept: OrderedDict[tuple[str, int], np.ndarray] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._file.schema_arrow.names)

    def count(self, name: str) -> int:
        """How many rows there are."""
        return int(self._ends[-1])

    def read(self, name: str, indices: np.ndarray) -> np.ndarray:
        """The rows at `indices` of the column `name`."""
        groups = np.searchsorted(self._ends, indices, side="right") - 1
        rows: np.ndarray | None = None
        for group in np.unique(groups):
            values = self._group(name, int(group))
            if rows is None:
                rows = np.empty((len(indices), *values.shape[1:]), values.dtype)
            if rows.shape[1:] != values.shape[1:]:
                raise ConfigurationError(
                    f"Column {name!r} of {self.path} must have rows of one length, but those from row "
                    f"{self._ends[group]} (from 0) have shape {values.shape[1:]} and others {rows.shape[1:]}"
                )
            here = groups == group
            rows[here] = values[indices[here] - self._ends[group]]
        return np.empty(0) if rows is None else rows

    def digest(self, names: tuple[str, ...]) -> bytes:
        """From the file's footer, which holds sizes, places, and least and greatest values of every row group."""
        return hashlib.sha256(repr((names, self._file.metadata.to_dict())).encode()).digest()

    def _group(self, name: str, group: int) -> np.ndarray:
        key = (name, group)
        if key not in self._kept:
            try:
                column = self._file.read_row_group(group, columns=[name]).column(name)
            except (OSError, ValueError) as error:
                raise ConfigurationError(
                    f"Column {name!r} of {self.path} cannot be read: {' '.join(str(error).split())[:200]}"
                ) from None
            self._kept[key] = self._decoded(name, column.combine_chunks(), int(self._ends[group]))
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(array.nbytes for array in self._kept.values()) > self._budget:
            self._kept.popitem(last=False)
        return self._kept[key]

    def _decoded(self, name: str, column: Any, first: int, width: int = 1) -> np.ndarray:
        """Column as an array; `first` is the number of its first row, `width` the values of a row."""
        import pyarrow.compute

        kinds = pyarrow.types
        if column.null_count:
            place = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise ConfigurationError(
                f"Column {name!r} of {self.path} must have a value in every place, but row {first + place // width} "
                "(from 0) has none"
            )
        if kinds.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not any(
            is_kind(column.type) for is_kind in (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
        ):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        lengths = np.asarray(pyarrow.compute.list_value_length(column))
        if len(odd := np.flatnonzero(lengths != lengths[0])):
            raise ConfigurationError(
                f"Column {name!r} of {self.path} must have rows of one length, but row {first + odd[0] // width} (from 0) "
                f"has {lengths[odd[0]]} values and row {first} has {lengths[0]}"
            )
        length = int(lengths[0])
        values = self._decoded(name, column.flatten(), first, width * length)
        return values.reshape(len(column), length, *values.shape[1:])


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ConfigurationError(
            "Package 'pyarrow' is missing, which Parquet files need; install it with `pip install 'qflock[parquet]'`"
        ) from None
    return parquet
