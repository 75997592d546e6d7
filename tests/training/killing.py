"""Ends this process by SIGKILL at a chosen operation on the files below a folder, also in the middle of a write."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from qflock.training import store


class _TornFile:
    """A file whose every write can be torn in two."""

    def __init__(self, file: Any, boundary: Callable[[], None]) -> None:
        self._file, self._boundary = file, boundary

    def __enter__(self) -> _TornFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, content: bytes) -> None:
        half = len(content) // 2
        for part in (content[:half], content[half:]):
            self._file.write(part)
            self._file.flush()
            self._boundary()


def kill_at(number: int, folder: str) -> None:
    """From now on the operations on paths that contain `folder` are counted, and the process dies before the given one."""
    done = 0

    def boundary(path: object) -> None:
        nonlocal done
        text = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path)  # type: ignore[call-overload]
        if folder in text:
            done += 1
            if done == number:
                os.kill(os.getpid(), signal.SIGKILL)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: object, *arguments: Any, **more: Any) -> Any:
            boundary(path)
            return function(path, *arguments, **more)

        return call

    for name in ("fsync", "replace", "remove", "unlink", "makedirs"):
        setattr(os, name, counted(getattr(os, name)))

    def torn_open(path: str, mode: str) -> _TornFile:
        boundary(path)
        return _TornFile(open(path, mode), lambda: boundary(path))

    vars(store)["open"] = torn_open
