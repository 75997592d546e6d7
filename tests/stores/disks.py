"""A small disk that fills up or turns read-only while somebody writes to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SIZE = 4 << 20


class Disk:
    """A file system of its own where this process may mount one; otherwise a folder that its owner can only close."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = os.geteuid() == 0 and _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", folder)

    def fill(self) -> str:
        """Takes all the space there is; returns what a writer then is told."""
        if not self.own:
            return self.close()
        with open(self.folder / "filler", "wb", buffering=0) as file:
            for size in (65536, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        continue
                except OSError:
                    continue
        return "no space is left on the device"

    def close(self) -> str:
        """Lets nobody write any more; returns what a writer then is told."""
        if self.own and _mount("-o", "remount,ro", self.folder):
            return "the file system is read-only"
        for path in [*self.folder.rglob("*"), self.folder]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        return "permission is denied"

    def open(self) -> None:
        """Undoes the above."""
        if self.own:
            _mount("-o", "remount,rw", self.folder)
        else:
            for path in [self.folder, *self.folder.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
        (self.folder / "filler").unlink(missing_ok=True)


def _mount(*arguments: object) -> bool:
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    disk = Disk(folder)
    try:
        yield disk
    finally:
        disk.open()
        if disk.own:
            subprocess.run(["umount", str(folder)], check=True)
