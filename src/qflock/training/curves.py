"""What TensorBoard shows of a run: written next to it, or locally and copied where the run is in a bucket."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from qflock.training.board import STATIC
from qflock.training.events import PREFIX, EventWriter, Histogram, histograms, read_events, scalars
from qflock.training.store import Store

FOLDER = "tensorboard"
SYNC_SECONDS = 25.0
STEPS_AT_ONCE = 64
STEP_TAGS = ("step_loss", "restarts")


class Curves:
    """Adds to a run's event files. What a resumed run does again is dropped from them, so that each step is there once.

    Args:
        store: Of the run.
        step: Steps that are done.
        epoch_step: Steps that were done at the end of the last whole epoch.
    """

    def __init__(self, store: Store, step: int, epoch_step: int) -> None:
        self._store = store
        folder = store.local_path()
        self._temporary = Path(tempfile.mkdtemp(prefix="qflock-curves-")) if folder is None else None
        self._sizes: dict[str, int] = {}
        self._synced = time.monotonic()
        self._losses: list[tuple[int, float]] = []
        old = [name for name in store.list(FOLDER) if name.startswith(PREFIX)]
        past = _past(store, old, step, epoch_step)
        self._writer = EventWriter(self._temporary or Path(folder or ".") / FOLDER)
        self._writer.put(lambda: past)
        self.sync()
        for name in old:
            store.delete(f"{FOLDER}/{name}")

    def describe(self, events: Callable[[], Iterable[Event]]) -> None:
        """Adds what is written once."""
        self._writer.put(events)

    def step(self, step: int, loss: float) -> None:
        """Adds the loss of a step."""
        self._losses.append((step, loss))
        if len(self._losses) >= STEPS_AT_ONCE:
            self._hand_over_steps()

    def values(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a number for each tag."""
        self._writer.put(lambda: [scalars(step, values)])

    def distributions(self, step: int, make: Callable[[], Mapping[str, Histogram]]) -> None:
        """Adds histograms, which are made by the thread that writes."""
        self._writer.put(lambda: [histograms(step, make())])

    def sync_sometimes(self) -> None:
        """Copies the files to a bucket if that was long ago."""
        if self._temporary and time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Returns when all that was added is in the store."""
        self._hand_over_steps()
        self._writer.flush()
        if self._temporary:
            for file in sorted(self._temporary.iterdir()):
                if self._sizes.get(file.name) != file.stat().st_size:
                    content = file.read_bytes()
                    self._store.write(f"{FOLDER}/{file.name}", content)
                    self._sizes[file.name] = len(content)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Copies the files to the store for the last time and removes the local ones."""
        self.sync()
        self._writer.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _hand_over_steps(self) -> None:
        losses, self._losses = self._losses, []
        if losses:
            self._writer.put(partial(_step_events, losses))


def _step_events(losses: list[tuple[int, float]]) -> Iterable[Event]:
    return [scalars(step, {"step_loss": loss}) for step, loss in losses]


def _past(store: Store, names: list[str], step: int, epoch_step: int) -> list[Event]:
    """The events that stay, each once, even if an earlier clean-up was interrupted half-way."""
    seen: set[tuple[str, int]] = set()
    kept = []
    with tempfile.TemporaryDirectory(prefix="qflock-curves-") as folder:
        for name in names:
            file = Path(folder) / name
            file.write_bytes(store.read(f"{FOLDER}/{name}"))
            for event in read_events(file):
                values = [v for v in event.summary.value if _stays(v.tag, event.step, step, epoch_step)]
                values = [v for v in values if (v.tag, event.step) not in seen]
                seen.update((v.tag, event.step) for v in values)
                if values:
                    summary = Summary(value=values)
                    kept.append(Event(step=event.step, wall_time=event.wall_time, summary=summary))
    return kept


def _stays(tag: str, at: int, step: int, epoch_step: int) -> bool:
    if tag.startswith(STATIC):  # is written anew
        return False
    return at <= (step if tag in STEP_TAGS else epoch_step)
