"""What the chief shows: a bar on a terminal, one line per epoch elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any


class Progress(AbstractContextManager["Progress"]):
    """Shows epoch, step, loss, metrics and the time that is left."""

    def __init__(self, epochs: int, total_steps: int, done_steps: int, visible: bool) -> None:
        self._epochs, self._visible, self._start, self._first = epochs, visible, time.monotonic(), done_steps
        self._total = total_steps
        self._bar: Any = _bar() if visible and sys.stdout.isatty() else None
        self._task = (
            self._bar.add_task("", total=total_steps, completed=done_steps, text="") if self._bar else None
        )
        self._shown = 0.0

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def step(self, step: int, epoch: int, loss: float) -> None:
        """After a step; drawn at most ten times a second."""
        if self._bar and time.monotonic() - self._shown > 0.1:
            self._shown = time.monotonic()
            self._bar.update(
                self._task, completed=step, text=f"epoch {epoch}/{self._epochs}  loss {loss:.4f}"
            )

    def epoch(self, epoch: int, step: int, values: dict[str, float]) -> None:
        """After an epoch."""
        text = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
        if self._bar:
            self._bar.update(self._task, completed=step, text=f"epoch {epoch}/{self._epochs}  {text}")
        elif self._visible:
            left = (time.monotonic() - self._start) / max(step - self._first, 1) * (self._total - step)
            print(f"epoch {epoch}/{self._epochs}  step {step}  {text}  left {left:.0f} s", flush=True)


def _bar() -> Any:
    from rich import progress

    return progress.Progress(
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[text]}"),
        progress.TimeRemainingColumn(),
    )
