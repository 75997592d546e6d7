"""What every peer's script shares: read a workload, time a call, write the answer. Needs NumPy only.

A script is run as `python lightning.py workload.npz answer.json`, by the interpreter of its own environment.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Gate:
    """`name` to the power `factor * parameters[parameter]`, or `factor` where `parameter` is None."""

    name: str
    qubits: tuple[int, ...]
    parameter: int | None = None
    factor: float = 1.0


@dataclass(frozen=True)
class Workload:
    """One value-and-gradient task: the loss is the sum of <Z> over all readouts and all examples.

    Attributes:
        name: such as "8x32", qubits times examples.
        preparation: gates before the data.
        angles: (examples, qubits), radians of one Rx per qubit; exactly 0 means no gate there.
        model: gates after the data.
        readouts: qubits whose Z is measured.
        parameters: (symbols,), the values at which loss and gradient are asked.
    """

    name: str
    qubits: int
    preparation: tuple[Gate, ...]
    angles: np.ndarray
    model: tuple[Gate, ...]
    readouts: tuple[int, ...]
    parameters: np.ndarray

    @property
    def examples(self) -> int:
        return len(self.angles)


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median and quartiles over `calls` calls, and the first call, which compiles."""

    median: float
    low: float
    high: float
    calls: int
    first: float


@dataclass(frozen=True)
class Answer:
    """What a simulator computed for a workload, and how long it took.

    Attributes:
        forward: expectation values of all examples.
        timing: value and gradient of the loss.
    """

    simulator: str
    version: str
    workload: str
    forward: Timing
    timing: Timing
    expectations: np.ndarray
    gradient: np.ndarray


def save_workload(workload: Workload, path: Path) -> None:
    circuits = {
        "preparation": [asdict(gate) for gate in workload.preparation],
        "model": [asdict(gate) for gate in workload.model],
    }
    np.savez(
        path,
        name=workload.name,
        qubits=workload.qubits,
        circuits=json.dumps(circuits),
        angles=workload.angles,
        readouts=np.array(workload.readouts),
        parameters=workload.parameters,
    )


def load_workload(path: Path) -> Workload:
    with np.load(path, allow_pickle=False) as stored:
        circuits = json.loads(str(stored["circuits"]))
        return Workload(
            name=str(stored["name"]),
            qubits=int(stored["qubits"]),
            preparation=_gates(circuits["preparation"]),
            angles=stored["angles"],
            model=_gates(circuits["model"]),
            readouts=tuple(int(qubit) for qubit in stored["readouts"]),
            parameters=stored["parameters"],
        )


def _gates(rows: list[dict[str, Any]]) -> tuple[Gate, ...]:
    return tuple(Gate(r["name"], tuple(r["qubits"]), r["parameter"], r["factor"]) for r in rows)


def measure(call: Callable[[], Any], seconds: float = 3.0, at_least: int = 3, at_most: int = 2000) -> Timing:
    """Calls until `seconds` have passed; the first call is kept apart, a second one warms up."""
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    call()
    times: list[float] = []
    while len(times) < at_least or (sum(times) < seconds and len(times) < at_most):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    low, median, high = np.quantile(times, (0.25, 0.5, 0.75))
    return Timing(float(median), float(low), float(high), len(times), first)


class EpochClock:
    """Seconds of each epoch, by the two functions that a Keras `LambdaCallback` of any version takes."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = 0.0

    def begin(self, epoch: int, logs: Any = None) -> None:
        self._start = time.perf_counter()

    def end(self, epoch: int, logs: Any = None) -> None:
        self.seconds.append(time.perf_counter() - self._start)

    @property
    def median(self) -> float:
        """Without the first epoch, which compiles."""
        return float(np.median(self.seconds[1:]))


def fit_and_score(
    keras: Any, model: Any, data: Any, labels: np.ndarray, plan: dict[str, Any]
) -> dict[str, float]:
    """Trains a compiled model of any Keras version on the first `split` examples, and scores it on the others."""
    split, clock = int(plan["split"]), EpochClock()
    model.fit(
        data[:split],
        labels[:split],
        batch_size=int(plan["batch_size"]),
        epochs=int(plan["epochs"]),
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=clock.begin, on_epoch_end=clock.end)],
        verbose=0,
    )
    predicted = model.predict(data[split:], verbose=0)[:, 0]
    return {
        "loss": float(np.mean((predicted - labels[split:]) ** 2)),
        "accuracy": float(np.mean(predicted * labels[split:] > 0)),
        "epoch": clock.median,
    }


def save_answer(answer: Answer, path: Path) -> None:
    fields = {
        **asdict(answer),
        "expectations": answer.expectations.tolist(),
        "gradient": answer.gradient.tolist(),
    }
    path.write_text(json.dumps(fields))


def load_answer(path: Path) -> Answer:
    fields = json.loads(path.read_text())
    for name in ("forward", "timing"):
        fields[name] = Timing(**fields[name])
    fields["expectations"] = np.array(fields["expectations"])
    fields["gradient"] = np.array(fields["gradient"])
    return Answer(**fields)


def main(solve: Callable[[Workload], Answer]) -> None:
    source, target = map(Path, sys.argv[1:])
    save_answer(solve(load_workload(source)), target)
