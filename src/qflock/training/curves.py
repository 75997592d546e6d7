"""What TensorBoard shows of a run: local files, which a thread brings to the run's store, since buckets cannot append."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event

from qflock.training.events import PREFIX, EventWriter, Histogram, histograms, session_start
from qflock.training.past_events import past_events, record_event
from qflock.training.store import Store

FOLDER = "tensorboard"
# With the time that one copy takes, at most 30 s.
BUCKET_SECONDS = 20.0
LOCAL_SECONDS = 2.0
STEPS_AT_ONCE = 64


class Curves:
    """Writes what is measured, and brings it to the store in the background.

    A resumed run writes its past again and then removes the older files, so that each step appears once.

    Args:
        store: Of the run.
        past: Records of `metrics.jsonl` up to where the run goes on.
        epoch_step: Steps that were done at the end of the last whole epoch.
        sync_seconds: Between two copies to the store; by default 2 s to a folder and 20 s to a bucket.
    """

    def __init__(
        self,
        store: Store,
        past: Sequence[Mapping[str, Any]],
        epoch_step: int,
        sync_seconds: float | None = None,
    ) -> None:
        self._store = store
        self._sync_seconds = sync_seconds or (BUCKET_SECONDS if store.local_path() is None else LOCAL_SECONDS)
        self._old = [name for name in store.list(FOLDER) if name.startswith(PREFIX)]
        events = past_events(store, [f"{FOLDER}/{name}" for name in self._old], past, epoch_step)
        self._folder = Path(tempfile.mkdtemp(prefix="qflock-curves-"))
        self._copied: dict[str, int] = {}
        self._error: Exception | None = None
        self._steps: list[Mapping[str, Any]] = []
        self._collecting, self._copying, self._ended = threading.Lock(), threading.Lock(), threading.Event()
        self._writer = EventWriter(self._folder)
        # Viewers that are open drop what they have of later steps.
        self._writer.put(lambda: [session_start(), *events])
        self._thread = threading.Thread(target=self._copy_often, name="qflock-curves", daemon=True)
        self._thread.start()

    def add(self, record: Mapping[str, Any]) -> None:
        """Adds a record of `metrics.jsonl`.

        Raises:
            StoreError: If the local disk refuses, or the store has refused a copy.
        """
        self._check()
        with self._collecting:
            self._steps.append(record)
        if record["kind"] != "step" or len(self._steps) >= STEPS_AT_ONCE:
            self._hand_over()

    def describe(self, events: Callable[[], Iterable[Event]]) -> None:
        """Adds what is written once; the function is called by the thread that writes."""
        self._writer.put(events)

    def distributions(self, step: int, make: Callable[[], Mapping[str, Histogram]]) -> None:
        """Adds histograms, which are made by the thread that writes."""
        self._writer.put(lambda: [histograms(step, make())])

    def sync(self) -> None:
        """Returns when all that was added is in the store; errors are those of `add`."""
        self._check()
        self._copy()

    def close(self) -> None:
        """Brings everything to the store and removes the local files."""
        self._ended.set()
        self._thread.join()  # lest an older copy arrive after the last one
        self.sync()
        self.discard()

    def discard(self) -> None:
        """Removes the local files; a copy that is under way is not waited for."""
        self._ended.set()
        with suppress(Exception):  # what has ended the training is told already
            self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self) -> None:
        if self._error:
            raise self._error

    def _hand_over(self) -> None:
        with self._collecting:
            records, self._steps = self._steps, []
            if records:
                self._writer.put(partial(map, record_event, records))

    def _copy_often(self) -> None:
        while not self._ended.wait(self._sync_seconds):
            try:
                self._copy()
            except Exception as error:
                self._error = error  # raised in the training by what it adds next
                return

    def _copy(self) -> None:
        with self._copying:
            self._hand_over()
            self._writer.flush()
            for name, content in self._news():
                self._store.extend(f"{FOLDER}/{name}", content)
                self._copied[name] = len(content)
            while self._old:
                self._store.delete(f"{FOLDER}/{self._old.pop()}")

    def _news(self) -> list[tuple[str, bytes]]:
        """The files that have grown since they were copied, the oldest first."""
        try:
            files = [(file.name, file.stat().st_size, file) for file in sorted(self._folder.iterdir())]
            return [
                (name, file.read_bytes()) for name, size, file in files if size > self._copied.get(name, 0)
            ]
        except OSError as error:
            raise self._writer.refused(error) from error
