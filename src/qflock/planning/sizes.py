"""Ready models of any size, from their circuits alone: states, work, the largest that fits, kernel times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from qflock.circuits.tensors import serialize
from qflock.engine.loads import Load, loads
from qflock.engine.memory import estimate_memory
from qflock.engine.simulator import Simulator
from qflock.models.cluster_data import SMALLEST_WIDTH, cluster_data
from qflock.models.qcnn import qcnn_circuits

MOST_QUBITS = 64  # wider ones are not looked at: with a bounded cone they all fit
MEASURED_STATE_QUBITS = 16  # larger states are reckoned, so that measuring stays short
CHART_QUBITS = (4, 6, 8, 10, 12, 14, 16)
_CHART_CIRCUITS = 32
_ALWAYS_MEASURED = 12


@cache
def loads_of(architecture: str, qubits: int) -> tuple[Load, ...]:
    """The states that one example of a QCNN needs."""
    (example, *_) = cluster_data(qubits, 2, seed=0).train_circuits
    return tuple(
        load
        for circuit, operators in qcnn_circuits(architecture, qubits)
        for load in loads(circuit, operators, example)
    )


def state_qubits(architecture: str, qubits: int) -> int:
    """Qubits of the largest state."""
    return max(load.qubits for load in loads_of(architecture, qubits))


def work_of(architecture: str, qubits: int) -> float:
    """Amplitudes times gates of one example."""
    return sum(load.work for load in loads_of(architecture, qubits))


def measured_width(architecture: str, qubits: int) -> int:
    """The width that is measured in place of `qubits`: the same, unless its states are too large to be quick."""
    return _largest(lambda n: state_qubits(architecture, n) <= MEASURED_STATE_QUBITS, qubits)


def largest_width(architecture: str, memory: int, base: int) -> int:
    """The widest QCNN whose states fit beside a process of `base` bytes; 0 where none does, at most `MOST_QUBITS`."""

    def fits(qubits: int) -> bool:
        return base + estimate_memory(state_qubits(architecture, qubits)) <= memory

    return _largest(fits, MOST_QUBITS) if fits(SMALLEST_WIDTH) else 0


def _largest(accepted: Callable[[int], bool], most: int) -> int:
    """The largest width up to `most`; what is accepted stays so for all smaller ones, and the smallest is."""
    good, bad = SMALLEST_WIDTH, most + 1
    while bad - good > 1:
        middle = min(2 * good, (good + bad) // 2)  # small widths are quick to look at
        if accepted(middle):
            good = middle
        else:
            bad = middle
    return good


@dataclass(frozen=True)
class KernelTime:
    """Kernel seconds of training on one circuit of a width, and its work."""

    qubits: int
    seconds: float
    work: float


def kernel_times(architecture: str, seconds: float) -> list[KernelTime]:
    """Measures narrow QCNNs with all threads: those with quick states always, more until the time is used up.

    Args:
        architecture: Of the QCNN.
        seconds: For all of it, about.
    """
    found: list[KernelTime] = []
    end = time.perf_counter() + seconds
    for qubits in CHART_QUBITS:
        if qubits > _ALWAYS_MEASURED and time.perf_counter() > end:
            break
        data = cluster_data(qubits, 2 * _CHART_CIRCUITS, seed=0).train_circuits[:_CHART_CIRCUITS]
        circuits = [serialize(circuit) for circuit in data]
        simulators = [Simulator(*pair) for pair in qcnn_circuits(architecture, qubits)]
        best = min(_training_seconds(simulators, circuits) for _ in range(4))  # the first one compiles
        found.append(KernelTime(qubits, best / len(circuits), work_of(architecture, qubits)))
    return found


def _training_seconds(simulators: list[Simulator], circuits: list[bytes]) -> float:
    begin = time.perf_counter()
    for simulator in simulators:
        values = np.full(simulator.parameter_count, 0.1)
        simulator.expectations(values, circuits)
        simulator.vjp(values, np.ones((len(circuits), simulator.observable_count)), circuits)
    return time.perf_counter() - begin
