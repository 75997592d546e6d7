"""Records a range of steps for the profiler, on every worker, into the run."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

import tensorflow as tf

from qflock.errors import ConfigurationError
from qflock.training.step_range import StepRange
from qflock.training.store import Store

FOLDER = "tensorboard/plugins/profile"
log = logging.getLogger("qflock")


class StepProfile(AbstractContextManager["StepProfile"]):
    """Marks every step for the trace viewer, and records those of the range.

    Args:
        range: What to record; None for nothing.
        store: Of the run.
        worker: Index of this worker.
        total: Steps of the whole training.

    Raises:
        ConfigurationError: If the range begins after the last step.
    """

    def __init__(self, range: StepRange | None, store: Store, worker: int, total: int) -> None:
        if range is not None and range.first > total:
            raise ConfigurationError(
                f"Option --profile must begin at one of the {total} steps of this training, but begins at {range.first}"
            )
        self._range, self._store, self._worker = range, store, worker
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @contextmanager
    def step(self, step: int) -> Iterator[None]:
        """Around a step, counted from 1."""
        wanted = self._range
        if wanted and not self._folder and wanted.first <= step <= wanted.last:
            self._start()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            yield
        if wanted and step >= wanted.last:
            self._stop(keep=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop(keep=kind is None)

    def _start(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="qflock-profile-")
        # Python's own frames would fill the trace and slow the steps down.
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
        try:
            tf.profiler.experimental.start(folder.name, options)
        except tf.errors.AlreadyExistsError:
            log.warning("Steps are not recorded: another profile of this worker is being taken")
            self._range = None
            return
        self._folder = folder

    def _stop(self, keep: bool) -> None:
        if self._folder is None:
            return
        with self._folder as folder:
            self._folder = None
            tf.profiler.experimental.stop(save=keep)
            if keep and self._range:
                session = f"steps-{self._range.first}-{self._range.last}"
                for file in Path(folder).rglob("*.xplane.pb"):
                    name = f"{FOLDER}/{session}/worker-{self._worker}.xplane.pb"
                    self._store.write(name, file.read_bytes())
        self._range = None
