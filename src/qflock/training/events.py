"""TensorBoard's event files, written by a thread of their own so that training does not wait for them."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE, DT_FLOAT, DT_STRING
from tensorboard.plugins.histogram import metadata as histogram_plugin
from tensorboard.plugins.image import metadata as image_plugin
from tensorboard.plugins.scalar import metadata as scalar_plugin
from tensorboard.plugins.text import metadata as text_plugin

from qflock.errors import StoreError
from qflock.training.faults import fault_of

PREFIX = "events.out.tfevents"
BUCKETS = 30
SEGMENT_BYTES = 4 << 20
FLUSH_SECONDS = 2.0


@dataclass(frozen=True)
class Histogram:
    """Counts between edges.

    Args:
        edges: `(bins + 1,)`, rising.
        counts: `(bins,)`.
    """

    edges: NDArray[np.float64]
    counts: NDArray[Any]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Histogram:
        """Of values of any shape, over 30 equal bins.

        Example:
            >>> Histogram.of(np.array([0.0, 1.0, 1.0])).counts[[0, -1]].tolist()
            [1, 2]
        """
        flat = np.asarray(values, dtype=np.float64).ravel()
        flat = flat[np.isfinite(flat)]
        if not flat.size:
            return cls(np.zeros(2), np.zeros(1))
        low, high = float(flat.min()), float(flat.max())
        if low == high:
            return cls(np.array([low, high]), np.array([flat.size]))
        place = ((flat - low) * (BUCKETS / (high - low))).astype(np.int64).clip(0, BUCKETS - 1)
        return cls(np.linspace(low, high, BUCKETS + 1), np.bincount(place, minlength=BUCKETS))


def scalars(step: int, values: Mapping[str, float]) -> Event:
    """An event of one number for each tag."""
    summary = Summary()
    for tag, value in values.items():
        summary.value.add(tag=tag, metadata=_SCALAR, tensor=TensorProto(dtype=DT_FLOAT, float_val=[value]))
    return Event(step=step, wall_time=time.time(), summary=summary)


def histograms(step: int, values: Mapping[str, Histogram]) -> Event:
    """An event of one histogram for each tag."""
    summary = Summary()
    for tag, value in values.items():
        table = np.stack([value.edges[:-1], value.edges[1:], value.counts], axis=1)
        tensor = TensorProto(dtype=DT_DOUBLE, tensor_content=table.astype(np.float64).tobytes())
        for size in table.shape:
            tensor.tensor_shape.dim.add(size=size)
        summary.value.add(tag=tag, metadata=_HISTOGRAM, tensor=tensor)
    return Event(step=step, wall_time=time.time(), summary=summary)


def picture(tag: str, png: bytes, width: int, height: int) -> Event:
    """An event of one picture, at step 0."""
    content = [str(width).encode(), str(height).encode(), png]
    return _strings(tag, content, image_plugin.create_summary_metadata(None, None))


def text(tag: str, markdown: str) -> Event:
    """An event of one piece of Markdown, at step 0."""
    return _strings(tag, [markdown.encode()], text_plugin.create_summary_metadata(None, None))


def graph(definition: bytes) -> Event:
    """An event of a serialised `GraphDef`."""
    return Event(wall_time=time.time(), graph_def=definition)


def session_start() -> Event:
    """Says that training begins anew: viewers forget what they have."""
    return Event(wall_time=time.time(), step=0, session_log=SessionLog(status=SessionLog.START))


def _strings(tag: str, content: list[bytes], metadata: SummaryMetadata) -> Event:
    tensor = TensorProto(dtype=DT_STRING, string_val=content)
    tensor.tensor_shape.dim.add(size=len(content))
    summary = Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])
    return Event(wall_time=time.time(), summary=summary)


_SCALAR = scalar_plugin.create_summary_metadata(None, None)
_HISTOGRAM = histogram_plugin.create_summary_metadata(None, None)


def read_events(file: Path) -> Iterator[Event]:
    """The events of a file up to where a writer was interrupted."""
    for content in RawEventFileLoader(str(file)).Load():
        yield Event.FromString(content)


class EventWriter:
    """Writes events to a folder, in files of a few MiB, so that a copy elsewhere renews the newest file only.

    Args:
        folder: Is made if there is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._files = self._bytes = 0
        self._open()
        self._queue: queue.SimpleQueue[Callable[[], Iterable[Event]] | threading.Event | None]
        self._queue = queue.SimpleQueue()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="qflock-events", daemon=True)
        self._thread.start()

    def put(self, events: Callable[[], Iterable[Event]]) -> None:
        """Hands over events; the function is called on the thread that writes."""
        self._check()
        self._queue.put(events)

    def flush(self) -> None:
        """Returns when everything handed over so far is in the files; `StoreError` if it could not be written."""
        done = threading.Event()
        self._queue.put(done)
        while not done.wait(0.5) and self._thread.is_alive():
            continue
        self._check()

    def close(self) -> None:
        """Writes what is left and ends the thread; nothing happens the second time."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
            self._attempt(self._file.close)
        self._check()

    def refused(self, error: Exception) -> StoreError:
        """What to raise where the folder cannot be used."""
        return StoreError(
            f"Cannot write TensorBoard's files below {self.folder}: {fault_of(error, local=True).text}; "
            "free space there, or use another folder (the one of a run is made in TMPDIR)"
        )

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            try:
                job = self._queue.get(timeout=FLUSH_SECONDS)
            except queue.Empty:
                self._attempt(self._file.flush)
                continue
            if job is None:
                return
            if isinstance(job, threading.Event):
                self._attempt(self._file.flush)
                job.set()
            else:
                self._attempt(partial(self._write, job))

    def _attempt(self, action: Callable[[], None]) -> None:
        """The first error is kept for whoever hands over the next events."""
        try:
            action()
        except Exception as error:
            self._error = self._error or self._told(error)

    def _told(self, error: Exception) -> Exception:
        """What is raised for `error`; made where it is kept, since whoever raises it does so at any moment."""
        if not isinstance(error, OSError | tf.errors.OpError):
            return error
        refused = self.refused(error)
        refused.__cause__ = error
        return refused

    def _write(self, events: Callable[[], Iterable[Event]]) -> None:
        for event in events():
            self._record(event)
        if self._bytes > SEGMENT_BYTES:
            self._file.close()
            self._open()

    def _record(self, event: Event) -> None:
        content = event.SerializeToString()
        self._file.write(content)
        self._bytes += len(content)

    def _open(self) -> None:
        """Begins a file, whose name sorts after those before it."""
        name = f"{PREFIX}.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}.{self._files:04d}"
        self._files += 1
        # TensorBoard's own writer computes checksums in Python, which costs milliseconds for a picture.
        self._file = tf.io.TFRecordWriter(str(self.folder / name))
        self._bytes = 0
        self._record(Event(wall_time=time.time(), file_version="brain.Event:2"))
