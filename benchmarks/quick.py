"""Our own figures beside their targets, in under three minutes."""

from __future__ import annotations

import functools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.ours import Evaluation, gradient_time
from benchmarks.peers.harness import measure
from benchmarks.workloads import Task, full, hybrid
from qflock.engine.processor import thread_count
from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator

GENERAL, REDUCED = Reductions.none(), Reductions()

_TURNS = 10


@dataclass(frozen=True)
class Target:
    """A figure that must stay on the right side of a limit.

    Attributes:
        figure: measures, in the unit of `limit`.
        at_least: whether more is better.
    """

    name: str
    limit: float
    unit: str
    figure: Callable[[], float]
    at_least: bool = False

    def met_by(self, measured: float) -> bool:
        return measured >= self.limit if self.at_least else measured <= self.limit


def targets() -> Iterator[Target]:
    for qubits, examples, limit in ((8, 32, 0.4), (8, 1024, 6), (12, 32, 3), (16, 8, 10), (20, 2, 50)):
        task = hybrid(qubits, examples)
        yield Target(
            f"general path, {task.name}", limit, "ms", lambda task=task: _milliseconds(task, GENERAL)
        )
    yield Target("general path, 23x1 full", 700, "ms", lambda: _milliseconds(full(23, 1), GENERAL, 2.0))
    yield Target("all reductions, 23x1 full", 450, "ms", lambda: _milliseconds(full(23, 1), REDUCED, 2.0))
    yield Target("layer in tf.function, 8x32, above the engine", 1.5, "ms", _layer_overhead)
    if thread_count() >= 2:
        for task in (hybrid(16, 8), hybrid(20, 2)):
            yield Target(
                f"2 threads over 1, {task.name}", 1.8, "times", lambda t=task: _speedup(t), at_least=True
            )
    yield Target("24 qubits over 16, cost per amplitude", 1.6, "times", _out_of_cache)
    yield Target("compile a model of 23 qubits", 0.5, "s", _compile_model)
    yield Target("compile one more data circuit of 23 qubits", 1, "ms", _compile_data)
    yield Target("30 qubits, 100 epochs of 2,000 circuits", 180, "s", _many_evaluations)
    yield Target("epoch, 8 qubits, 112 examples", 0.05, "s", lambda: _epoch(8, 160))
    yield Target("epoch, 23 qubits, 1000 examples", 2, "s", lambda: _epoch(23, 1429))
    yield Target("import qflock after import cirq", 0.2, "s", _import_time)


def quick() -> int:
    """Prints target and measured value of each; 1 where any is missed."""
    missed = 0
    for target in targets():
        measured = target.figure()
        met = target.met_by(measured)
        missed += not met
        relation = "at least" if target.at_least else "at most"
        wanted = f"{relation} {target.limit:g} {target.unit}"
        print(
            f"{'ok    ' if met else 'MISSED'} {target.name:48}{measured:9.3g} {target.unit:6}{wanted}",
            flush=True,
        )
    print(f"{missed} missed" if missed else "all targets met")
    return 1 if missed else 0


def _milliseconds(task: Task, reductions: Reductions, seconds: float = 1.0) -> float:
    return 1e3 * gradient_time(task, reductions, seconds=seconds).median


def _speedup(task: Task) -> float:
    """Of the fastest of several turns: clocks change, and neighbours come and go, between one turn and the next."""
    turns = [
        [gradient_time(task, GENERAL, threads, seconds=0.4).median for threads in (1, 2)]
        for _ in range(_TURNS)
    ]
    one, two = (min(times) for times in zip(*turns, strict=True))
    return one / two


def _out_of_cache() -> float:
    """One thread, amplitude lanes; both circuits have nearly the same gates per qubit."""
    cost = {}
    for qubits in (16, 24):
        task = hybrid(qubits, 1)
        simulator = Simulator(task.model, task.observables, reductions=GENERAL, threads=1, lanes="amplitude")
        upstream = np.ones((1, simulator.observable_count))
        values = np.ones(simulator.parameter_count)
        median = measure(functools.partial(simulator.vjp, values, upstream), 1.0, at_least=1).median
        cost[qubits] = median / (2**qubits * qubits)
    return cost[24] / cost[16]


def _compile_model() -> float:
    task = hybrid(23, 1)
    start = time.perf_counter()
    simulator = Simulator(task.model, task.observables)
    simulator.expectations(np.ones(simulator.parameter_count), task.data_circuits)
    return time.perf_counter() - start


def _compile_data() -> float:
    return min(_compile_data_once() for _ in range(3))


def _compile_data_once() -> float:
    """The first look at each of 200 circuits, less the second look at the same, where 200 others are known."""
    evaluation = Evaluation(hybrid(23, 400), REDUCED)
    data = evaluation.data
    evaluation.data = data[:200]
    evaluation.expectations()
    evaluation.data = data[200:]
    start = time.perf_counter()
    evaluation.expectations()
    middle = time.perf_counter()
    evaluation.expectations()
    return 1e3 * (2 * middle - start - time.perf_counter()) / 200


def _many_evaluations() -> float:
    """200,000 values and gradients: the first epoch, which compiles the circuits, and 99 times the second."""
    evaluation = Evaluation(hybrid(30, 2000), REDUCED)
    start = time.perf_counter()
    evaluation.value_and_gradient()
    middle = time.perf_counter()
    evaluation.value_and_gradient()
    return middle - start + 99 * (time.perf_counter() - middle)


def _layer_overhead() -> float:
    import tensorflow as tf

    from qflock.layers import PQC, convert_to_tensor

    task = hybrid(8, 32)
    layer = PQC(task.model, list(task.observables))
    circuits = convert_to_tensor(task.data_circuits)

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(circuits))
        return tape.gradient(loss, layer.trainable_variables[0].value)

    through_layer = measure(lambda: step().numpy(), 1.0).median
    # The layer evaluates values and gradient by two calls, one on the way forward and one on the way back.
    return 1e3 * (through_layer - gradient_time(task, REDUCED, seconds=1.0).median)


def _epoch(qubits: int, examples: int) -> float:
    """The median epoch of `qflock train` in one process, validation included, after the first one."""
    import tensorflow as tf

    from qflock.training.loop import Worker, train
    from qflock.training.metrics_log import read_metrics
    from qflock.training.progress import Display
    from qflock.training.ready import qcnn_experiment
    from qflock.training.spec import RunSpec
    from qflock.training.store import Store

    arguments = {"architecture": "hybrid", "qubits": qubits, "examples": examples}
    store = Store(f"memory://epoch-{qubits}")
    spec = RunSpec("qcnn", arguments, epochs=12)
    train(
        qcnn_experiment(**arguments), spec, store, Worker(0, 1, tf.distribute.get_strategy()), Display.quiet
    )
    epochs = [record["seconds"] for record in read_metrics(store) if record["kind"] == "epoch"]
    return float(np.median(epochs[1:]))


def _import_time() -> float:
    code = "import time, cirq; t = time.perf_counter(); import qflock; print(time.perf_counter() - t)"
    finished = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return float(finished.stdout)
