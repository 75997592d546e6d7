"""The training loop of one worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from qflock.errors import PreemptedError
from qflock.training import checkpoints
from qflock.training.batches import Batches, worker_slice
from qflock.training.board import described, distributions, learning_rate, norm, watch_readouts
from qflock.training.callback_state import CallbackState
from qflock.training.curves import Curves
from qflock.training.data import Data, fingerprint, pack
from qflock.training.experiment import Experiment
from qflock.training.metrics_log import MetricsLog
from qflock.training.observation import RATES, Observation, observe
from qflock.training.progress import Display, Progress
from qflock.training.run import VALIDATION, write_status
from qflock.training.spec import RunSpec
from qflock.training.state import Position, capture, restore, share, training_fingerprint, unchanged
from qflock.training.step_profile import StepProfile
from qflock.training.step_range import StepRange
from qflock.training.steps import Steps
from qflock.training.store import Store

# An early checkpoint is only written when writing has cost less than this share of the time since the last one.
CHECKPOINT_SHARE = 0.02
STATUS_SECONDS = 5.0
# Of more workers only the sums are kept: thousands of curves help nobody.
MOST_WORKERS = 64


@dataclass(frozen=True)
class Worker:
    """Which of the workers this is, how to reach the others, and when to stop.

    Args:
        index: From 0; worker 0 is the chief.
        count: How many there are.
        strategy: The `tf.distribute` strategy over all of them.
        stopping: Whether this worker was asked to stop; looked at once per step.
        on_step: Told the number of steps done after each step.
        on_end: Called when everything is stored; from then on the others may leave.
        alive: How many of the workers answer, for display.
        on_resume: Told the number of steps done where a run goes on.
    """

    index: int
    count: int
    strategy: Any
    stopping: Callable[[], bool] = lambda: False
    on_step: Callable[[int], None] = lambda step: None
    on_end: Callable[[], None] = lambda: None
    alive: Callable[[], int] = lambda: 1
    on_resume: Callable[[int], None] = lambda step: None

    @property
    def chief(self) -> bool:
        """Whether this is worker 0, which alone writes to the run."""
        return self.index == 0


def train(
    experiment: Experiment,
    spec: RunSpec,
    store: Store,
    worker: Worker,
    display: Display = Display.full,
    profile: StepRange | None = None,
) -> dict[str, float]:
    """Trains, from the newest checkpoint if there is one, until all epochs are done.

    Args:
        experiment: What to train.
        spec: For how long and from which seed.
        store: Where the chief stores everything.
        worker: Which worker this is.
        display: How the chief shows progress.
        profile: Steps that every worker records for the profiler, if any.

    Returns:
        The values of the last epoch.

    Raises:
        PreemptedError: If a worker was asked to stop; the state is stored.
        RunError: If the run cannot be written, or belongs to another training.
    """
    keras.utils.set_random_seed(spec.seed)
    shown = display if worker.chief else Display.quiet
    with Progress(shown, spec.epochs, worker.count, worker.alive) as progress:
        progress.phase("preparing the data")
        data = experiment.data(spec.seed)
        progress.phase("compiling the model")
        steps = Steps(experiment, worker.strategy, data.train, spec.learning_rate)
        identity = training_fingerprint(steps, fingerprint(data), spec.batch_size, spec.seed)
        stored = checkpoints.to_resume(store, identity) if worker.chief else None
        position = restore(steps, stored, worker.chief)
        if position:
            worker.on_resume(position.step)
        remembered = share(steps, stored.callbacks if stored else b"") if position else b""
        training = _Training(
            spec, store, worker, steps, data, position or Position(0, 0, identity), progress, profile
        )
        return training.run(experiment, position, remembered)


@dataclass
class _Training:
    spec: RunSpec
    store: Store
    worker: Worker
    steps: Steps
    data: Data
    position: Position
    progress: Progress
    profile_range: StepRange | None
    values: dict[str, float] = field(default_factory=dict)
    log: MetricsLog | None = None
    curves: Curves | None = None

    def run(self, experiment: Experiment, resumed: Position | None, remembered: bytes) -> dict[str, float]:
        self.batches = Batches(len(self.data.train), self.spec.batch_size, self.spec.seed)
        total = self.spec.epochs * self.batches.steps_per_epoch
        self.profile = StepProfile(self.profile_range, self.store, self.worker.index, total)
        self.callbacks = keras.callbacks.CallbackList(
            list(experiment.callbacks()), model=self.steps.model, epochs=self.spec.epochs,
            steps=self.batches.steps_per_epoch,
        )  # fmt: skip
        self.steps.model.stop_training = False
        self._begin_callbacks(remembered)
        self.saved = self.reported = time.monotonic()
        self.cost = 0.0
        try:
            self._keep_records(resumed)
            self._write(lambda: self._begin(resumed is None))
            self.progress.start(total, self.position.step)
            with self.profile:
                self._epochs()
            self._finish()
        finally:
            if self.curves:
                self.curves.discard()
            if self.log:
                self.log.close()
        return self.values

    def _keep_records(self, resumed: Position | None) -> None:
        """Makes the chief ready to note what happens, after what has happened before."""
        self.log = MetricsLog(self.store, resumed) if self.worker.chief else None
        if self.log and resumed:
            self.log.restart(resumed.step, resumed.epochs, self.worker.count)
        past = self.log.records() if self.log else []
        whole = self.position.epochs * self.batches.steps_per_epoch
        self.curves = Curves(self.store, past, whole) if self.log else None
        self.values = _logged(past)

    def _begin(self, first: bool) -> None:
        self.store.remove_unfinished()
        if first:
            self.store.write(VALIDATION, pack(self.data.validation))
        write_status(self.store, "running", self.position.step, self.values.get("loss"))
        assert self.log and self.curves
        self.log.flush()
        example, about = self.data.train.take(np.zeros(1, dtype=np.int64))[0], _about(self.spec, self.worker)
        self.curves.describe(described(self.steps.model, about, example))

    def _begin_callbacks(self, remembered: bytes) -> None:
        """A resumed run calls again what was called before the checkpoint, but nothing of it counts twice."""
        if not remembered:
            self.callbacks.on_train_begin()
            self.callback_state = self._state_of_callbacks()
            return
        with unchanged(self.steps):
            self.callbacks.on_train_begin()
            self.callback_state = self._state_of_callbacks()
            if self._inside_epoch():
                self.callbacks.on_epoch_begin(self.position.epochs)
        self.callback_state.restore(remembered)

    def _state_of_callbacks(self) -> CallbackState:
        return CallbackState(self.steps.model, self.callbacks.callbacks)

    def _inside_epoch(self) -> bool:
        return self.position.step > self.position.epochs * self.batches.steps_per_epoch

    def _epochs(self) -> None:
        while self.position.epochs < self.spec.epochs and not self.steps.model.stop_training:
            started = time.perf_counter()
            if not self._inside_epoch():
                self.callbacks.on_epoch_begin(self.position.epochs)
            end = (self.position.epochs + 1) * self.batches.steps_per_epoch
            while self.position.step < end:
                self._step()
            self._end_epoch(started)
        self.callbacks.on_train_end(self.values)

    def _step(self) -> None:
        step, epoch = self.position.step, self.position.epochs
        place = step % self.batches.steps_per_epoch
        self.callbacks.on_train_batch_begin(place)
        indices = self.batches.indices(step)
        mine = worker_slice(indices, self.worker.index, self.worker.count)
        with self.profile.step(step + 1):
            # Only a request that all workers have seen in the same step makes them stop, at the same step.
            loss, stop = self.steps.train(self.data.train, mine, len(indices), self._wish())
        self.position = Position(step + 1, epoch, self.position.fingerprint)
        self.callbacks.on_train_batch_end(place, {"loss": loss})
        if self.log and self.curves:
            self.curves.add(self.log.step(step + 1, epoch + 1, loss))
        self.progress.step(step + 1, epoch + 1, loss)
        self.worker.on_step(step + 1)
        if stop >= _STOP:
            self._checkpoint()
            self._write(lambda: self._report("preempted"))
            self._barrier()
            raise PreemptedError(
                f"Stopped at step {step + 1} as asked; the state is stored, start again to resume"
            )
        if stop:
            self._checkpoint()

    def _wish(self) -> float:
        """Stop, checkpoint, or nothing: the wishes of all workers are summed in the step."""
        if self.worker.stopping():
            return _STOP
        due = time.monotonic() - self.saved > self.spec.checkpoint_seconds
        return 1.0 if self.worker.chief and due else 0.0

    def _end_epoch(self, started: float) -> None:
        pace = self.steps.clock.take()
        readouts = watch_readouts(self.steps.model)
        self._validate()
        seen = observe(self.steps, self.worker.index, pace, readouts)
        self.values = logs = seen.metrics
        step, epochs = self.position.step, self.position.epochs + 1
        self.position = Position(step, epochs, self.position.fingerprint)
        self.callbacks.on_epoch_end(epochs - 1, dict(logs))
        rates = seen.rates()
        self._write(lambda: self._record(seen, logs | rates, time.perf_counter() - started))
        self.progress.epoch(epochs, step, logs, rates["circuits_per_second/all"])
        if self._epoch_checkpoint_is_cheap():
            self._checkpoint()
        self.steps.clock.start()

    def _validate(self) -> None:
        every = np.arange(len(self.data.validation))
        for start in range(0, len(every), _VALIDATION_ROWS):
            rows = every[start : start + _VALIDATION_ROWS]
            self.steps.validate(
                self.data.validation, worker_slice(rows, self.worker.index, self.worker.count)
            )

    def _record(self, seen: Observation, measured: dict[str, float], seconds: float) -> None:
        """On the chief: an epoch's values, rates and distributions."""
        assert self.log and self.curves
        step, epoch = self.position.step, self.position.epochs
        extra = {"learning_rate": learning_rate(self.steps.optimizer), "gradient_norm": norm(seen.gradients)}
        values = {**measured, **extra, "seconds": seconds}
        self.curves.add(self.log.epoch(epoch, step, values))
        for index, pace in enumerate(seen.paces[:MOST_WORKERS]):
            self.curves.add(self.log.pace(epoch, step, index, pace.rates()))
        weights = {v.path: np.array(v.numpy()) for v in self.steps.model.trainable_variables}
        self.curves.distributions(step, lambda: distributions(weights, seen.gradients, seen.readouts))
        self._report_sometimes()

    def _epoch_checkpoint_is_cheap(self) -> bool:
        """Decided by the chief for all, because capturing a state takes all workers."""
        elapsed = time.monotonic() - self.saved
        cheap = self.worker.chief and self.cost <= CHECKPOINT_SHARE * elapsed
        (votes,) = self.steps.sum_over_workers([np.array([int(cheap)])])
        return bool(votes[0])

    def _checkpoint(self) -> None:
        started = time.monotonic()
        state = capture(self.steps, self.position, self.callback_state.pack())

        def save() -> None:
            if self.log and self.curves:
                self.log.flush()
                self.curves.sync()
            checkpoints.save(self.store, state, self.spec.keep)

        self._write(save)
        self.saved = time.monotonic()
        self.cost = self.saved - started
        self.progress.checkpoint(self.position.step)

    def _report_sometimes(self) -> None:
        if time.monotonic() - self.reported > STATUS_SECONDS:
            self._report("running")

    def _report(self, state: str) -> None:
        if self.log:
            self.log.flush()
        if self.curves and state != "running":
            self.curves.close()
        # Last, so that a run that says "finished" is complete.
        write_status(self.store, state, self.position.step, self.values.get("loss"))
        self.reported = time.monotonic()

    def _finish(self) -> None:
        self._checkpoint()
        self._write(lambda: self._report("finished"))
        self._barrier()

    def _write(self, action: Callable[[], None]) -> None:
        """Runs `action` on the chief alone."""
        if self.worker.chief:
            action()

    def _barrier(self) -> None:
        """No worker leaves before the chief has stored the result and all know that the others may leave."""
        self.steps.sum_over_workers([np.ones(1)])
        self.worker.on_end()
        with suppress(tf.errors.OpError):  # broken by whoever has left already: all know it by now
            self.steps.sum_over_workers([np.ones(1)])


_STOP = 1024.0
_VALIDATION_ROWS = 4096


def _logged(past: list[dict[str, Any]]) -> dict[str, float]:
    hidden = ("kind", "epoch", "step", "seconds", "learning_rate", "gradient_norm", *RATES)
    epochs = [record for record in past if record["kind"] == "epoch"]
    return {k: v for k, v in epochs[-1].items() if k not in hidden} if epochs else {}


def _about(spec: RunSpec, worker: Worker) -> dict[str, Any]:
    """The hyper-parameters by name."""
    return {**asdict(spec), "workers": worker.count}
