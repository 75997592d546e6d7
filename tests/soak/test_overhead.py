"""What is written for TensorBoard costs little of a training's time."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from qflock.training import loop
from qflock.training.observation import Observation
from qflock.training.progress import Display
from qflock.training.ready import qcnn_experiment
from qflock.training.run import claim
from qflock.training.spec import RunSpec
from qflock.training.store import Store

PAIRS = 9
WITHOUT: dict[str, Any] = {
    "observe": lambda *arguments: Observation((), {}, {}),
    "watch_readouts": lambda model: [],
    "described": lambda *arguments: None,
}


class NoCurves:
    """Takes everything and writes nothing."""

    def __init__(self, *arguments: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


def seconds(folder: Path) -> float:
    """Of the training of `make demo`, in this process."""
    spec = RunSpec("qcnn", {"architecture": "hybrid", "qubits": 8, "examples": 160}, 50, 32)
    store = Store(str(folder))
    claim(store, spec, join=False)
    worker = loop.Worker(0, 1, tf.distribute.get_strategy())
    experiment = qcnn_experiment("hybrid", 8, 160)
    started = time.perf_counter()
    loop.train(experiment, spec, store, worker, Display.quiet)
    return time.perf_counter() - started


@pytest.mark.soak
def test_tensorboard_costs_at_most_five_percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(tmp_path / "warm")
    ratios = []
    for pair in range(PAIRS):
        written = seconds(tmp_path / f"written-{pair}")
        with monkeypatch.context() as patched:
            patched.setattr(loop, "Curves", NoCurves)
            for name, replacement in WITHOUT.items():
                patched.setattr(loop, name, replacement)
            ratios.append(written / seconds(tmp_path / f"bare-{pair}"))
    assert statistics.median(ratios) <= 1.05, ratios
