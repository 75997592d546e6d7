"""A measuring process: one worker that does a few steps of the real training, and its parts one by one.

`python -m qflock.planning.measuring QUESTION ANSWER` is started like a training worker; the chief writes the answer.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cirq
import numpy as np

from qflock.circuits.tensors import deserialize
from qflock.cluster.identity import Identity, identity_from
from qflock.cluster.launcher import PERMANENT
from qflock.cluster.strategy import join, quiet_tensorflow
from qflock.engine.loads import Load, loads
from qflock.engine.processor import thread_count
from qflock.engine.simulator import Simulator
from qflock.errors import QflockError
from qflock.planning.measured import Measured, Question
from qflock.training.batches import Batches, worker_slice
from qflock.training.data import Inputs, as_tuple

_START_TIMEOUT = 120.0
_LEAST_REPEATS = 3
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


def measure(question: Question, identity: Identity | None) -> Measured:
    """Measures; all workers must call it at about the same time."""
    from qflock.training.ready import experiment_of
    from qflock.training.steps import Steps

    spec, me = question.spec, identity or Identity()
    strategy = join(identity, _START_TIMEOUT)
    experiment = experiment_of(spec, question.trusted)
    data = experiment.data(spec.seed)
    steps = Steps(experiment, strategy, data.train, spec.learning_rate)
    size = min(spec.batch_size, len(data.train))
    batches = Batches(len(data.train), size, spec.seed)
    first = worker_slice(batches.indices(0), me.index, me.count)
    steps.train(data.train, first, size, 0.0)
    steps.validate(data.validation, np.arange(1))
    start = time.time() - question.asked
    rows = worker_slice(np.arange(size), me.index, me.count)
    kernels, states = _kernels(steps.model, data.train.take(np.arange(size))[0])
    place = _place_seconds(kernels, data.validation.take(np.arange(min(8, len(data.validation))))[0])
    part = question.seconds / 8
    sizes = _sizes(max(1, len(rows))) if kernels else []
    each = part / max(1, len(sizes))
    gradient = [_usual(partial(_gradient, kernels, n), each) for n in sizes]
    forward = [_usual(partial(_forward, kernels, n), each) for n in sizes]
    one_thread = _usual(partial(_gradient, kernels, sizes[-1], True), part) if kernels else 0.0
    whole = [k for k in range(batches.steps_per_epoch) if len(batches.indices(k)) == size]
    step = _step_seconds(steps, data.train, batches, whole, me, 2 * part)
    checked = np.arange(min(len(data.validation), sizes[-1] if sizes else 8))
    validation = _usual(lambda: steps.validate(data.validation, checked), part)
    latency, bandwidth, reads = _together(steps)
    return Measured(
        workers=me.count,
        threads=thread_count(),
        start=start,
        place=place,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        step=step,
        rows=len(rows),
        batches=tuple(sizes),
        gradient=_never_falling(gradient),
        forward=_never_falling(forward),
        one_thread=one_thread,
        validation=max(0.0, validation - (float(np.interp(len(checked), sizes, forward)) if sizes else 0.0)),
        reads=reads,
        latency=latency,
        bytes_per_second=bandwidth,
        parameter_bytes=sum(int(np.prod(v.shape)) * 4 for v in steps.model.trainable_variables),
        example_bytes=_example_bytes(data.train.take(np.arange(1))[0]),
        train_examples=len(data.train),
        validation_examples=len(data.validation),
        qubits=tuple(load.qubits for load in states),
        work=sum(load.work for load in states),
    )


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
    return _undisturbed(times)


def _never_falling(times: Sequence[float]) -> tuple[float, ...]:
    """A smaller batch takes no longer than a larger one; where it did, something else disturbed it."""
    return tuple(np.minimum.accumulate(times[::-1])[::-1].tolist())


def _timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _undisturbed(times: Sequence[float]) -> float:
    """The lowest decile: other programs on the machine only ever add time, and one lucky value is not enough."""
    return float(np.quantile(times, 0.1))


def _step_seconds(
    steps: Any, part: Any, batches: Batches, whole: list[int], me: Identity, seconds: float
) -> float:
    """A whole step; as many on every worker, since each of them is a meeting."""

    def step(number: int) -> None:
        indices = batches.indices(whole[number % len(whole)])
        steps.train(part, worker_slice(indices, me.index, me.count), len(indices), 0.0)

    trial = [_timed(partial(step, k)) for k in range(len(whole) + 1)][-1]
    count = _agreed(steps, me, max(_LEAST_REPEATS, int(seconds / trial)))
    return _undisturbed([_timed(partial(step, k)) for k in range(count)])


def _together(steps: Any) -> tuple[float, float, float]:
    """One hop of a small reduction, the bytes per second of a big one, and the seconds of reading all metrics."""

    def read() -> None:
        steps.read(steps.train_metrics)
        steps.read(steps.validation_metrics, "val_")
        steps.sum_over_workers([np.ones(1)])

    reads = _meet(read)
    if steps.workers == 1:
        return 0.0, 0.0, reads
    small, big = (_reduction_seconds(steps.strategy, size) for size in (1, _BIG))
    # Of two workers each sends the half twice.
    return small / 2, 8 * _BIG / max(big - small, 1e-6), reads


def _reduction_seconds(strategy: Any, size: int) -> float:
    """One reduction alone: several in a row in one call, less a call with one."""
    import tensorflow as tf

    def in_a_row(count: int) -> float:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            total = tf.ones(size, tf.float64)
            for _ in range(count):
                total = context.all_reduce(tf.distribute.ReduceOp.SUM, total) / 2
            return total

        call = tf.function(lambda: strategy.experimental_local_results(strategy.run(replica))[0])
        return _meet(lambda: call().numpy())

    return max(1e-6, (in_a_row(_IN_A_ROW) - in_a_row(1)) / (_IN_A_ROW - 1))


def _meet(action: Callable[[], object]) -> float:
    """Of something that takes all workers, and therefore happens as often on each."""
    return _undisturbed([_timed(action) for _ in range(_MEETINGS)][1:])


def _agreed(steps: Any, me: Identity, count: int) -> int:
    """The chief's count, on every worker."""
    (total,) = steps.sum_over_workers([np.array([count if me.chief else 0])])
    return int(total[0])


def _example_bytes(inputs: Inputs) -> int:
    return sum(len(a.ravel()[0]) if a.dtype.kind in "OS" else int(a.nbytes) for a in as_tuple(inputs))


def main(question: str, answer: str) -> int:
    """Entry point. What goes wrong is written beside the answer, in one line."""
    quiet_tensorflow()
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
