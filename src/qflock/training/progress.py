"""What the chief shows: a bar on a terminal, one line per epoch elsewhere, or one JSON object a line."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol

from qflock.engine.watch import watch

SLOW_SECONDS = 2.0  # what takes longer is named on the bar
SILENT_SECONDS = 10.0  # what takes longer is named on a line of its own


class Display(StrEnum):
    """How progress is shown."""

    full = "full"
    json = "json"
    quiet = "quiet"


@dataclass
class Standing:
    """Where a training stands.

    Args:
        epochs: In all.
        workers: In all.
        alive: Says how many of them answer.
        phase: What is being prepared; empty once steps are done.
        total: Steps in all; 0 before that is known.
        first: Steps that were done before this start.
        step: Steps done.
        epoch: The current one, from 1.
        values: Loss and metrics; of the last step or the last epoch.
        rate: Circuits per second over all workers.
        checkpoint: Step of the last one; None before the first.
        started: `time.monotonic()` of the first step.
    """

    epochs: int
    workers: int
    alive: Callable[[], int]
    phase: str = "starting"
    total: int = 0
    first: int = 0
    step: int = 0
    epoch: int = 0
    values: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0
    checkpoint: int | None = None
    started: float = 0.0

    def seconds_left(self) -> float:
        """By the pace so far."""
        done = self.step - self.first
        return (time.monotonic() - self.started) / done * (self.total - self.step) if done else 0.0

    def doing(self) -> str:
        """What has kept this process busy for a while, or nothing."""
        activity = watch.activity
        if activity is not None and time.monotonic() - activity.started > SLOW_SECONDS:
            share = f" {activity.share:.0%}" if activity.share else ""
            state = f" of {activity.qubits} qubits" if activity.qubits else ""
            return f"{activity.kind}{state}{share}"
        compiled = watch.work().compiled
        return f"{self.phase} ({compiled} circuits compiled)" if self.phase and compiled > 1 else self.phase

    def text(self) -> str:
        """Epoch, values, speed, workers and the last checkpoint."""
        parts = [f"epoch {self.epoch}/{self.epochs}"] if self.epoch else []
        parts += [f"{name} {value:.4f}" for name, value in self.values.items()]
        if self.rate:
            parts.append(f"{self.rate:.0f} circuits/s")
        parts.append(f"workers {self.alive()}/{self.workers}")
        if self.checkpoint is not None:
            parts.append(f"checkpoint at step {self.checkpoint}")
        return "  ".join(parts)


class View(Protocol):
    """One way to show it."""

    def open(self) -> None:
        """Begins."""

    def close(self) -> None:
        """Ends."""

    def epoch(self) -> None:
        """An epoch has ended."""

    def checkpoint(self) -> None:
        """A checkpoint was stored."""


class Progress(AbstractContextManager["Progress"]):
    """Takes note of what happens and shows it.

    Args:
        display: How.
        epochs: In all.
        workers: In all.
        alive: Says how many of them answer.
    """

    def __init__(self, display: Display, epochs: int, workers: int, alive: Callable[[], int]) -> None:
        self._now = Standing(epochs, workers, alive)
        self._view = _view(display, self._now)

    def __enter__(self) -> Progress:
        self._view.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.close()

    def phase(self, name: str) -> None:
        """Names what is being prepared."""
        self._now.phase = name

    def start(self, total: int, done: int) -> None:
        """The first step is about to begin."""
        now = self._now
        now.total, now.first, now.step, now.started = total, done, done, time.monotonic()
        now.phase = "compiling the first step"

    def step(self, step: int, epoch: int, loss: float) -> None:
        """After a step."""
        now = self._now
        if now.phase:
            now.phase = ""
        if epoch != now.epoch:
            now.values = {"loss": loss}
        now.step, now.epoch = step, epoch
        now.values["loss"] = loss

    def epoch(self, epoch: int, step: int, values: dict[str, float], rate: float) -> None:
        """After an epoch.

        Args:
            epoch: From 1.
            step: Steps done.
            values: Loss and metrics.
            rate: Circuits per second over all workers.
        """
        now = self._now
        now.epoch, now.step, now.values, now.rate = epoch, step, dict(values), rate
        self._view.epoch()

    def checkpoint(self, step: int) -> None:
        """After a checkpoint."""
        self._now.checkpoint = step
        self._view.checkpoint()


class Nothing:
    """Shows nothing."""

    def open(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

    def epoch(self) -> None:
        """Nothing."""

    def checkpoint(self) -> None:
        """Nothing."""


class Bar(Nothing):
    """A bar with a line of text below it, drawn four times a second whether or not a step ends."""

    def __init__(self, now: Standing) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._now = now
        self._bar = RichProgress(
            BarColumn(bar_width=40), MofNCompleteColumn(), TextColumn("{task.fields[left]}")
        )
        self._task = self._bar.add_task("", total=None, left="")
        self._live = Live(get_renderable=self._draw, refresh_per_second=4)

    def open(self) -> None:
        """Starts to draw."""
        self._live.start()

    def close(self) -> None:
        """Draws for the last time."""
        self._live.stop()

    def _draw(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        now = self._now
        left = f"{_clock(now.seconds_left())} left" if now.step > now.first else ""
        self._bar.update(self._task, completed=now.step, total=now.total or None, left=left)
        lines = [Text(line) for line in (now.text(), now.doing()) if line]
        return Group(self._bar, *lines)


class Lines(Nothing):
    """One line per epoch, and one whenever nothing was said for a while."""

    def __init__(self, now: Standing) -> None:
        self._now = now
        self._said = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="qflock-progress", daemon=True)

    def open(self) -> None:
        """Starts to watch for long silence."""
        self._thread.start()

    def close(self) -> None:
        """Ends that."""
        self._ended.set()
        self._thread.join()

    def epoch(self) -> None:
        """Prints the epoch."""
        now = self._now
        values = "  ".join(f"{name} {value:.4f}" for name, value in now.values.items())
        rate = f"  {now.rate:.0f} circuits/s" if now.rate else ""
        self.say(
            f"epoch {now.epoch}/{now.epochs}  step {now.step}  {values}{rate}  left {now.seconds_left():.0f} s"
        )

    def silent(self) -> None:
        """Nothing was said for a while."""
        now = self._now
        self.say(f"step {now.step}/{now.total or '?'}  {now.text()}  {now.doing()}".rstrip())

    def say(self, line: str) -> None:
        """Prints at once."""
        self._said = time.monotonic()
        with suppress(OSError):  # a training goes on though nobody listens any more
            print(line, flush=True)

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            if time.monotonic() - self._said > SILENT_SECONDS:
                self.silent()


class Objects(Lines):
    """One JSON object a line."""

    def epoch(self) -> None:
        """Prints the epoch."""
        now = self._now
        left = {"circuits_per_second": now.rate, "seconds_left": now.seconds_left()}
        self._object("epoch", now.values | left)

    def checkpoint(self) -> None:
        """Prints the checkpoint."""
        self._object("checkpoint", {})

    def silent(self) -> None:
        """Prints what takes so long."""
        self._object("busy", {"doing": self._now.doing()})

    def _object(self, event: str, more: dict[str, Any]) -> None:
        now = self._now
        where = {"epoch": now.epoch, "epochs": now.epochs, "step": now.step, "steps": now.total}
        workers = {"workers": now.workers, "alive": now.alive(), "checkpoint": now.checkpoint}
        self.say(json.dumps({"event": event, **where, **more, **workers}))


def _view(display: Display, now: Standing) -> View:
    if display == Display.quiet:
        return Nothing()
    if display == Display.json:
        return Objects(now)
    return Bar(now) if sys.stdout.isatty() else Lines(now)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
