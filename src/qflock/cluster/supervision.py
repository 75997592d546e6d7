"""What a worker tells the process that started it: how far it is, and why it failed. A folder of small files."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER_VARIABLE = "QFLOCK_SUPERVISION"
_SECONDS_BETWEEN = 0.2


@dataclass(frozen=True)
class Failure:
    """Why a worker failed.

    Args:
        step: Steps that were done.
        message: One line.
        traceback: Of an unforeseen error; empty otherwise.
    """

    step: int
    message: str
    traceback: str = ""

    def same_as(self, other: Failure | None) -> bool:
        """Whether both are the same unforeseen error at the same step; tracebacks may differ in generated names."""
        if other is None or not self.traceback or not other.traceback:
            return False
        return (self.step, self.message) == (other.step, other.message)


class Reporter:
    """The worker's side. Does nothing where no supervisor has named a folder."""

    def __init__(self, index: int) -> None:
        folder = os.environ.get(FOLDER_VARIABLE)
        self._folder = Path(folder) if folder else None
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._index, self._last, self.step = index, 0.0, 0

    def on_step(self, step: int) -> None:
        """Called after each step; writes a few times a second."""
        self.step = step
        if self._folder and time.monotonic() - self._last > _SECONDS_BETWEEN:
            self._last = time.monotonic()
            self._write("step", str(step))

    def on_resume(self, step: int) -> None:
        """Called where a run goes on after `step`: a failure before the next step is one at this step."""
        self.step = step

    def failed(self, message: str, traceback: str = "") -> None:
        """Called once, when the worker fails."""
        self._write("failure", json.dumps(asdict(Failure(self.step, message, traceback))))

    def _write(self, kind: str, text: str) -> None:
        if self._folder:
            target = self._folder / f"{kind}-{self._index}"
            temporary = target.with_suffix(".part")
            temporary.write_text(text)
            temporary.replace(target)


def last_step(folder: Path) -> int:
    """The furthest step that any worker has reported."""
    return max((int(path.read_text()) for path in folder.glob("step-*") if path.suffix != ".part"), default=0)


def failure_of(folder: Path, index: int) -> Failure | None:
    """What worker `index` said when it failed, if it could say anything."""
    path = folder / f"failure-{index}"
    return Failure(**json.loads(path.read_text())) if path.exists() else None
