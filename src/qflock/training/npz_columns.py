"""Columns of an `.npz` file, mapped into memory: only the rows that are asked for are read from the disk."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from qflock.errors import ConfigurationError

_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip file: lengths of the name and of the extra field


class NpzColumns:
    """Arrays of equal length by name.

    Args:
        path: File from `numpy.savez`. One from `numpy.savez_compressed` works too, but each array in use is then
            unpacked into memory.

    Raises:
        ConfigurationError: If the file is not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
        except (OSError, zipfile.BadZipFile) as error:
            raise ConfigurationError(
                f"{path} must be a file from numpy.savez, but cannot be read: {error}"
            ) from None
        self._members = {info.filename.removesuffix(".npy"): info for info in members}
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(self._members)

    def count(self, name: str) -> int:
        """How many rows the array `name` has."""
        return len(self._array(name))

    def read(self, name: str, indices: np.ndarray) -> np.ndarray:
        """The rows at `indices` of the array `name`, as a copy."""
        return np.asarray(self._array(name)[indices])

    def digest(self, names: tuple[str, ...]) -> bytes:
        """From the checksums that the file itself holds for each array."""
        return repr(
            [(name, self._members[name].CRC, self._members[name].file_size) for name in names]
        ).encode()

    def _array(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            info = self._members[name]
            try:
                mapped = info.compress_type == zipfile.ZIP_STORED
                self._arrays[name] = self._mapped(info) if mapped else self._unpacked(name)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
                raise ConfigurationError(
                    f"Array {name!r} of {self.path} must hold numbers or text in a plain NumPy array, "
                    f"but cannot be read: {' '.join(str(error).split())[:200]}"
                ) from None
            if self._arrays[name].ndim == 0:
                raise ConfigurationError(
                    f"Array {name!r} of {self.path} must have one row per example, but is a single value"
                )
        return self._arrays[name]

    def _mapped(self, info: zipfile.ZipInfo) -> np.ndarray:
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            file.seek(name + extra, 1)
            version = np.lib.format.read_magic(file)
            read: Any = _HEADERS.get(version)
            if read is None:
                raise ValueError(f"the array format is of version {version}, known are {sorted(_HEADERS)}")
            shape, fortran, dtype = read(file)
            if dtype.hasobject:
                raise ValueError(
                    "it holds pickled Python objects (rows that differ in length, for instance), which are never loaded"
                )
            if not np.prod(shape):
                return np.empty(shape, dtype)
            return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")

    def _unpacked(self, name: str) -> np.ndarray:
        with np.load(self.path, allow_pickle=False) as stored:
            return np.asarray(stored[name])


_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
