"""TensorBoard scalars: written to local files, which a thread copies to the run's store, since buckets cannot append."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from qflock.errors import QflockError, StoreError
from qflock.training.faults import fault_of
from qflock.training.store import Store

FOLDER = "tensorboard"
STEP_LOSS = "step/loss"
# With the time that one copy takes, at most 30 s.
SYNC_SECONDS = 20.0
# What is full is copied no more, so that the copies of a long run stay small.
FULL_BYTES = 4 << 20


class Curves:
    """Writes the loss of each step and the values of each epoch.

    A resumed run writes its past again and then removes the older files, so that each step appears once.

    Args:
        store: Of the run.
        past: Records of `metrics.jsonl` up to where the run goes on.
        sync_seconds: Between two copies to the store.
    """

    def __init__(
        self, store: Store, past: Iterable[Mapping[str, Any]], sync_seconds: float = SYNC_SECONDS
    ) -> None:
        self._store, self._sync_seconds = store, sync_seconds
        self._old = store.list(FOLDER)
        self._folder = Path(tempfile.mkdtemp(prefix="qflock-curves-"))
        self._copied: dict[str, int] = {}
        self._error: QflockError | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._count = 0
        self._open()
        # Viewers that are open drop what they have of later steps.
        self._write(Event(step=0, session_log=SessionLog(status=SessionLog.START)))
        for record in past:
            self.add(record)
        self._thread = threading.Thread(target=self._copy_often, name="qflock-curves", daemon=True)
        self._thread.start()

    def add(self, record: Mapping[str, Any]) -> None:
        """Adds a record of `metrics.jsonl`.

        Raises:
            StoreError: If the local disk refuses, or the store has refused a copy.
        """
        if self._error:
            raise self._error
        if record["kind"] == "step":
            values = {STEP_LOSS: record["loss"]}
        else:
            values = {k: v for k, v in record.items() if k not in ("kind", "epoch", "step")}
        scalars = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(Event(step=record["step"], summary=Summary(value=scalars)))

    def close(self) -> None:
        """Copies everything to the store and removes the local files."""
        self._ended.set()
        self._thread.join()  # lest an older copy arrive after the last one
        if self._error:
            raise self._error
        self._copy()
        self.discard()

    def discard(self) -> None:
        """Removes the local files; a copy that is under way is not waited for."""
        self._ended.set()
        with suppress(OSError):  # what a full disk has not taken
            self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        try:
            with self._lock:
                self._records.write(event.SerializeToString())
        except OSError as error:
            raise self._no_space(error) from error

    def _open(self) -> None:
        """Begins a file, whose name sorts after those before it."""
        name = (
            f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}.{self._count:04d}"
        )
        self._count += 1
        self._file = open(self._folder / name, "wb")  # noqa: SIM115 (lives as long as the training)
        self._records = RecordWriter(self._file)
        self._records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    def _copy_often(self) -> None:
        while not self._ended.wait(self._sync_seconds):
            try:
                self._copy()
            except QflockError as error:
                self._error = error  # raised in the training by what it adds next
                return

    def _copy(self) -> None:
        for name, content in self._news():
            self._store.write(f"{FOLDER}/{name}", content)
            self._copied[name] = len(content)
        while self._old:
            self._store.delete(f"{FOLDER}/{self._old.pop()}")

    def _news(self) -> list[tuple[str, bytes]]:
        """The files that have grown since they were copied."""
        try:
            with self._lock:
                self._file.flush()
                if self._file.tell() > FULL_BYTES:
                    self._file.close()
                    self._open()
            files = [(file.name, file.stat().st_size, file) for file in sorted(self._folder.iterdir())]
            return [
                (name, file.read_bytes()) for name, size, file in files if size > self._copied.get(name, 0)
            ]
        except (OSError, ValueError) as error:  # ValueError where the file was closed in the meantime
            raise self._no_space(error) from error

    def _no_space(self, error: Exception) -> StoreError:
        return StoreError(
            f"Cannot write TensorBoard's files below {self._folder}: {fault_of(error, local=True).text}; "
            "free space there, or set TMPDIR to another folder"
        )
