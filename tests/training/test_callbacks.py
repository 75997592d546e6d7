"""Callbacks that remember something: a run interrupted anywhere ends as the undisturbed one."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from qflock.errors import PreemptedError
from qflock.training import checkpoints
from qflock.training.callback_state import CallbackState
from qflock.training.experiment import Experiment
from qflock.training.loop import Worker, train
from qflock.training.metrics_log import read_metrics
from qflock.training.progress import Display
from qflock.training.spec import RunSpec
from qflock.training.state import TrainingState
from qflock.training.store import Store
from tests.training import linear
from tests.training.commands import LINEAR, qflock

STEPS = 4
SPEC = RunSpec("test", epochs=30, batch_size=28, learning_rate=0.15)


def _run(store: Store, experiment: Experiment, stop_at: int | None = None) -> TrainingState:
    """Trains in this process, asked to stop at a step; returns the newest state."""
    done = [0]
    worker = Worker(
        0, 1, tf.distribute.get_strategy(), lambda: done[0] == stop_at, lambda step: done.__setitem__(0, step)
    )
    if stop_at is None:
        train(experiment, SPEC, store, worker, Display.quiet)
    else:
        with pytest.raises(PreemptedError):
            train(experiment, SPEC, store, worker, Display.quiet)
    state = checkpoints.newest(store)
    assert state is not None
    return state


def _epochs(store: Store) -> list[dict[str, Any]]:
    return [r for r in read_metrics(store) if r["kind"] == "epoch"]


@pytest.fixture(scope="module")
def undisturbed() -> tuple[TrainingState, int]:
    store = Store("memory://callbacks/undisturbed")
    state = _run(store, linear.remembering)
    return state, len(_epochs(store))


@pytest.mark.parametrize("stops", [(2,), (STEPS * 5 - 1, STEPS * 6), (STEPS * 7 + 1, STEPS * 8)])
def test_interrupted_anywhere_it_ends_the_same(
    undisturbed: tuple[TrainingState, int], stops: tuple[int, ...]
) -> None:
    expected, epochs = undisturbed
    assert 8 < epochs < SPEC.epochs, "the data must make it stop early, but not at once"
    store = Store(f"memory://callbacks/{'-'.join(map(str, stops))}")
    for stop in stops:
        _run(store, linear.remembering, stop)
    state = _run(store, linear.remembering)
    assert len(_epochs(store)) == epochs
    assert state.position == expected.position
    for mine, theirs in zip(state.arrays, expected.arrays, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    assert json.loads(state.callbacks) == json.loads(expected.callbacks)


def test_a_run_that_has_decided_to_stop_does_not_go_on(undisturbed: tuple[TrainingState, int]) -> None:
    """As if it had died between its last checkpoint and the word that it is finished."""
    expected, epochs = undisturbed
    store = Store("memory://callbacks/undisturbed")
    state = _run(store, linear.remembering)
    assert (len(_epochs(store)), state.position) == (epochs, expected.position)


def test_resumed_on_two_workers(tmp_path: Path, undisturbed: tuple[TrainingState, int]) -> None:
    expected, epochs = undisturbed
    run = tmp_path / "run"
    arguments = (
        "--epochs",
        SPEC.epochs,
        "--batch-size",
        SPEC.batch_size,
        "--learning-rate",
        SPEC.learning_rate,
    )
    stopped = qflock(
        "train",
        f"{LINEAR}:remembering",
        *arguments,
        "--run",
        run,
        "--restarts",
        0,
        STOP_AT=str(STEPS * 7 + 1),
    )
    assert stopped.returncode == 143, stopped.stderr
    done = qflock("resume", run, "--workers", 2, "--experiment", f"{LINEAR}:remembering")
    assert done.returncode == 0, done.stderr
    store = Store(str(run))
    state = checkpoints.newest(store)
    assert state is not None and len(_epochs(store)) == epochs
    for mine, theirs in zip(state.arrays, expected.arrays, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


class _Remembers(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.count, self.best, self.path = 0, np.zeros(2, np.float32), "here"
        self.history: dict[str, list[float]] = {}


def test_only_plain_values_are_stored_and_put_back(caplog: pytest.LogCaptureFixture) -> None:
    model, callback = keras.Sequential(), _Remembers()
    state = CallbackState(model, [callback])
    callback.count, callback.best, callback.path = 3, np.ones(2, np.float32), "there"
    callback.history["loss"] = [1.0, float("nan")]
    callback.later = 4  # type: ignore[attr-defined]
    packed = state.pack()
    fresh = _Remembers()
    CallbackState(model, [fresh]).restore(packed)
    assert (fresh.count, fresh.best.tolist(), fresh.path, vars(fresh)["later"]) == (3, [1.0, 1.0], "here", 4)
    assert str(fresh.history) == "{'loss': [1.0, nan]}"

    tampered = json.loads(packed)
    tampered["callbacks"][0][1] |= {"path": 5, "on_epoch_end": 5, "_model": 5}
    CallbackState(model, [fresh]).restore(json.dumps(tampered).encode())
    assert fresh.path == "here" and callable(fresh.on_epoch_end) and fresh.model is None
    for damaged in (
        b"?",
        b"[]",
        b"[" * 100_000,
        b'{"stop": 0, "callbacks": [["_Remembers", {"count": "text"}]]}',
    ):
        CallbackState(model, [fresh]).restore(damaged)
    assert caplog.text.count("cannot be read and is left out") == 4 and fresh.count == 3


def test_other_callbacks_are_named(caplog: pytest.LogCaptureFixture) -> None:
    model = keras.Sequential()
    packed = CallbackState(model, [_Remembers()]).pack()
    with caplog.at_level(logging.WARNING):
        CallbackState(model, []).restore(packed)
    assert "was stored with _Remembers, but now has none" in caplog.text
