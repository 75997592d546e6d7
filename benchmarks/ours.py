"""qflock's own evaluation of a task: engine calls from NumPy arrays to values and gradient."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from benchmarks.peers.harness import Answer, Timing, measure
from benchmarks.workloads import Task, parameter_values
from qflock.circuits.tensors import serialize
from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator


class Evaluation:
    """A task, compiled and with its data circuits serialised, as a training loop holds it."""

    def __init__(self, task: Task, reductions: Reductions, threads: int | None = None) -> None:
        self.task = task
        self.simulator = Simulator(task.model, task.observables, reductions=reductions, threads=threads)
        self.values = parameter_values(self.simulator.parameter_count)
        self.data = [serialize(circuit) for circuit in task.data_circuits]
        self.upstream = np.ones((len(self.data), self.simulator.observable_count))

    def expectations(self) -> np.ndarray:
        return self.simulator.expectations(self.values, self.data)

    def value_and_gradient(self) -> tuple[np.ndarray, np.ndarray]:
        return self.simulator.vjp(self.values, self.upstream, self.data)


def solve(task: Task, reductions: Reductions, name: str) -> Answer:
    evaluation = Evaluation(task, reductions)
    forward = measure(evaluation.expectations)
    timing = measure(evaluation.value_and_gradient)
    expectations, gradient = evaluation.value_and_gradient()
    return Answer(name, version("qflock"), task.name, forward, timing, expectations, gradient)


def gradient_time(
    task: Task, reductions: Reductions, threads: int | None = None, seconds: float = 2.0
) -> Timing:
    return measure(Evaluation(task, reductions, threads).value_and_gradient, seconds)
