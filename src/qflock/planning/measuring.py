"""A measuring process: one worker that does a few steps of the real training, and its parts one by one.

`python -m qflock.planning.measuring QUESTION ANSWER WORKERS` starts workers as a training does; the chief writes the answer.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cirq
import numpy as np

from qflock.circuits.tensors import deserialize
from qflock.cluster.identity import Identity, identity_from
from qflock.cluster.launcher import PERMANENT, Launch, launch
from qflock.cluster.strategy import join, quiet_tensorflow
from qflock.cluster.worker import load
from qflock.engine.loads import Load, loads
from qflock.engine.processor import thread_count
from qflock.engine.simulator import Simulator
from qflock.errors import PreemptedError, QflockError
from qflock.planning.measured import Measured, Question, between
from qflock.training.batches import Batches, worker_slice
from qflock.training.data import Inputs, as_tuple
from qflock.training.experiment import Experiment
from qflock.training.metrics_log import read_metrics
from qflock.training.spec import RunSpec
from qflock.training.store import Store

if TYPE_CHECKING:
    from qflock.training.loop import Worker

_START_TIMEOUT = 120.0
_LEAST_REPEATS = 3
_LEAST_EPOCHS, _ENDLESS = 4, 10**6
_PATIENCE = 20.0
_MEETINGS = 21
_IN_A_ROW = 6
_BIG = 1 << 18  # float64 numbers: 2 MiB


@dataclass(frozen=True)
class _Kernel:
    """One quantum layer: its simulators, parameters and data circuits."""

    simulator: Simulator
    single: Simulator
    values: np.ndarray
    data: list[bytes]

    def gradient(self, rows: int, single: bool = False) -> None:
        """What a training step asks of the engine."""
        simulator = self.single if single else self.simulator
        data = self.data[:rows]
        simulator.expectations(self.values, data)
        simulator.vjp(self.values, np.ones((rows, simulator.observable_count)), data)

    def forward(self, rows: int) -> None:
        """What a validation asks of the engine."""
        self.simulator.expectations(self.values, self.data[:rows])


class _Watch:
    """Notes when each step of a training ends, and asks it to stop when it has run for long enough."""

    def __init__(self, chief: bool, batches: Batches, seconds: float) -> None:
        self._chief, self._batches, self._seconds = chief, batches, seconds
        self.ends: list[float] = []
        self.began = 0.0

    def on_step(self, step: int) -> None:
        """After each step."""
        if not self.ends:
            self.began = time.time()
        self.ends.append(time.perf_counter())

    def over(self) -> bool:
        """One worker that wishes to stop is enough to stop all in the same step."""
        if not self._chief or not self.ends:
            return False
        gone = time.perf_counter() - self.ends[0]
        # Steps of the first epoch compile circuits and tell nothing, so that slow ones are waited for, within reason.
        enough = len(self.ends) > _LEAST_EPOCHS * self._batches.steps_per_epoch
        return gone > self._seconds and (enough or gone > _PATIENCE * self._seconds)

    def seconds_of_step(self) -> float | None:
        """A whole step that follows another one in its epoch; None if there was none since all was compiled."""
        batches = self._batches
        whole = batches.examples // batches.batch_size
        pairs = list(enumerate(zip(self.ends, self.ends[1:], strict=False), start=1))
        warm = [
            later - earlier
            for number, (earlier, later) in pairs
            if number > batches.steps_per_epoch and 0 < number % batches.steps_per_epoch < whole
        ]
        return statistics.median(warm) if warm else None


def measure(question: Question, identity: Identity | None) -> Measured:
    """Measures; all workers must call it at about the same time."""
    import tensorflow as tf

    from qflock.training.loop import Worker
    from qflock.training.ready import experiment_of

    spec, me = question.spec, identity or Identity()
    strategy = join(identity, _START_TIMEOUT)
    experiment = experiment_of(spec, question.trusted)
    data = experiment.data(spec.seed)
    batches = Batches(len(data.train), min(spec.batch_size, len(data.train)), spec.seed)
    watch = _Watch(me.chief, batches, question.seconds / 2)
    worker = Worker(me.index, me.count, strategy, stopping=watch.over, on_step=watch.on_step)
    epochs = _train(replace(experiment, data=lambda seed: data), spec, worker)
    rows = worker_slice(np.arange(batches.batch_size), me.index, me.count)
    model = experiment.model()
    kernels, states = _kernels(model, data.train.take(np.arange(batches.batch_size))[0])
    place = _place_seconds(kernels, data.validation.take(np.arange(min(8, len(data.validation))))[0])
    sizes = _sizes(max(1, len(rows))) if kernels else []
    each = question.seconds / 8 / max(1, len(sizes))
    gradient = _never_falling([_usual(partial(_gradient, kernels, n), each) for n in sizes])
    forward = _never_falling([_usual(partial(_forward, kernels, n), each) for n in sizes])
    one_thread = _usual(partial(_gradient, kernels, sizes[-1], True), 4 * each) if kernels else 0.0
    latency, bandwidth = _reductions(strategy, me.count)
    if me.count > 1:
        with contextlib.suppress(tf.errors.OpError):  # by whoever is gone already: all have what they need
            _reduction_seconds(strategy, 1)
    checked = math.ceil(len(data.validation) / me.count)
    epoch = max(0.0, epochs - between(checked, tuple(sizes), forward))
    step = watch.seconds_of_step()
    if step is None:  # an epoch of one step
        step = epoch / batches.steps_per_epoch
    return Measured(
        workers=me.count,
        threads=thread_count(),
        start=max(0.0, watch.began - question.asked - len(rows) * place),
        place=place,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        step=step,
        rest=max(0.0, epoch - batches.steps_per_epoch * step),
        rows=len(rows),
        batches=tuple(sizes),
        gradient=gradient,
        forward=forward,
        one_thread=one_thread,
        latency=latency,
        bytes_per_second=bandwidth,
        parameter_bytes=sum(4 * int(np.prod(v.shape)) for v in model.trainable_variables),
        example_bytes=_example_bytes(data.train.take(np.arange(1))[0]),
        train_examples=len(data.train),
        validation_examples=len(data.validation),
        qubits=tuple(load.qubits for load in states),
        work=sum(load.work for load in states),
    )


def _train(experiment: Experiment, spec: RunSpec, worker: Worker) -> float:
    """Trains for real until it is asked to stop; seconds of a usual epoch, from the chief's own log of metrics."""
    from qflock.training.loop import train

    store = Store(f"memory://qflock-plan-{os.getpid()}")
    with contextlib.suppress(PreemptedError):
        train(experiment, replace(spec, epochs=_ENDLESS, checkpoint_seconds=3600.0), store, worker)
    epochs = [r["seconds"] for r in read_metrics(store) if r["kind"] == "epoch"]
    return statistics.median(epochs[1:] or epochs) if epochs else 0.0


def _kernels(model: Any, inputs: Inputs) -> tuple[list[_Kernel], list[Load]]:
    """The quantum layers with the circuits that reach them, and the states that one example needs."""
    import keras
    import tensorflow as tf

    from qflock.layers import PQC

    found: list[_Kernel] = []
    states: list[Load] = []
    for layer in [layer for layer in model.layers if isinstance(layer, PQC)]:
        before = keras.Model(model.inputs, layer.input)
        data = [bytes(item) for item in np.ravel(before([tf.constant(array) for array in as_tuple(inputs)]))]
        circuit, operators = layer.model_circuit, layer.operators
        single = Simulator(circuit, operators, threads=1)
        values = np.asarray(layer.get_weights()[0], dtype=np.float64)
        found.append(_Kernel(layer.simulator, single, values, data))
        example = deserialize(data[0])
        assert isinstance(example, cirq.AbstractCircuit)  # or the layer itself would have refused it
        states += loads(circuit, operators, example)
    return found, states


def _place_seconds(kernels: Sequence[_Kernel], fresh: Inputs) -> float:
    """Compiling one new data circuit in all layers; the second evaluation finds it compiled."""
    circuits = [
        bytes(item) for array in as_tuple(fresh) if array.dtype.kind in "OS" for item in array.ravel()
    ]
    if not kernels or not circuits:
        return 0.0

    def evaluate() -> float:
        begin = time.perf_counter()
        for kernel in kernels:
            kernel.single.expectations(kernel.values, circuits)
        return time.perf_counter() - begin

    cold, warm = evaluate(), evaluate()
    return max(0.0, cold - warm) / len(circuits)


def _sizes(most: int) -> list[int]:
    """One, two, four and so on, up to `most`."""
    return [*(1 << k for k in range(most.bit_length()) if 1 << k < most), most]


def _gradient(kernels: Sequence[_Kernel], rows: int, single: bool = False) -> None:
    for kernel in kernels:
        kernel.gradient(rows, single)


def _forward(kernels: Sequence[_Kernel], rows: int) -> None:
    for kernel in kernels:
        kernel.forward(rows)


def _usual(action: Callable[[], None], seconds: float) -> float:
    """Seconds of one call; the first call, which may compile, does not count."""
    action()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _LEAST_REPEATS or time.perf_counter() < end:
        times.append(_timed(action))
    return statistics.median(times)


def _never_falling(times: Sequence[float]) -> tuple[float, ...]:
    """A smaller batch takes no longer than a larger one; where it did, something else disturbed it."""
    return tuple(np.minimum.accumulate(times[::-1])[::-1].tolist())


def _timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _reductions(strategy: Any, workers: int) -> tuple[float, float]:
    """Seconds of one hop of a small reduction, and the bytes per second of a big one; 0 for one worker."""
    if workers == 1:
        return 0.0, 0.0
    small, big = (_reduction_seconds(strategy, size) for size in (1, _BIG))
    # Of two workers each sends the half twice.
    return small / 2, 8 * _BIG / max(big - small, 1e-6)


def _reduction_seconds(strategy: Any, size: int) -> float:
    """One reduction by itself: several in a row in one call, less a call with one."""
    import tensorflow as tf

    from qflock.training.summation import sum_over_workers

    def in_a_row(count: int) -> float:
        def replica() -> Any:
            total = tf.ones(size, tf.float64)
            for k in range(count):
                total = sum_over_workers([total], strategy.num_replicas_in_sync, f"{k} of {count}")[0] / 2
            return total

        call = tf.function(lambda: strategy.experimental_local_results(strategy.run(replica))[0])
        return _meet(lambda: call().numpy())

    return max(1e-6, (in_a_row(_IN_A_ROW) - in_a_row(1)) / (_IN_A_ROW - 1))


def _meet(action: Callable[[], object]) -> float:
    """Of something that takes all workers, and therefore happens as often on each."""
    return statistics.median([_timed(action) for _ in range(_MEETINGS)][1:])


def _example_bytes(inputs: Inputs) -> int:
    return sum(len(a.ravel()[0]) if a.dtype.kind in "OS" else int(a.nbytes) for a in as_tuple(inputs))


def main(question: str, answer: str, workers: str) -> int:
    """Entry point."""
    quiet_tensorflow()
    load()
    return launch(Launch(lambda: _work(question, answer), int(workers), restarts=0))


def _work(question: str, answer: str) -> int:
    """One worker. What goes wrong is written beside the answer, in one line."""
    me = identity_from(os.environ)
    try:
        measured = measure(Question.from_json(Path(question).read_text()), me)
    except Exception as error:
        line = (
            " ".join(str(error).split()) if isinstance(error, QflockError) else " ".join(repr(error).split())
        )
        Path(answer).with_suffix(".error").write_text(line[:500])
        return PERMANENT
    if me is None or me.chief:
        Path(answer).write_text(measured.to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
