"""A store that begins to refuse while a training runs: it stops with one clear line and keeps its last checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from qflock.errors import StoreError
from qflock.training import checkpoints
from qflock.training.loop import Worker, train
from qflock.training.metrics_log import read_metrics
from qflock.training.progress import Display
from qflock.training.spec import RunSpec
from qflock.training.store import Store
from tests.stores.buckets import Bucket
from tests.stores.disks import small_disk
from tests.stores.faulty_proxy import Fail, always
from tests.training.commands import LINEAR, check_curves, qflock, start
from tests.training.linear import make

EXPERIMENT = f"{LINEAR}:experiment"
STEPS = 240
TRAIN = ("train", EXPERIMENT, "--epochs", STEPS // 4, "--checkpoint-seconds", 0.3)


def _step(store: Store) -> int:
    found = checkpoints.newest(store)
    return found.position.step if found else 0


def _losses(store: Store) -> list[float]:
    return [record["loss"] for record in read_metrics(store) if record["kind"] == "step"]


def _wait_for_checkpoint(store: Store, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 240
    while not _step(store):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.05)


def _check_stopped(process: subprocess.Popen[str], code: int, place: str, what: str) -> None:
    output, _ = process.communicate(timeout=150)
    assert process.returncode == code, output
    errors = [line for line in output.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and "Traceback" not in output, output
    assert f" {place}" in errors[0] and what in errors[0] and "; credential: " in errors[0]


class At(keras.callbacks.Callback):
    """Does something after a given batch of an epoch."""

    def __init__(self, epoch: int, action: Callable[[], object]) -> None:
        super().__init__()
        self._epoch, self._action, self._now = epoch, action, -1

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._now = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        if (self._now, batch) == (self._epoch, 1):
            self._action()


def _train(store: Store, *callbacks: At) -> None:
    """Trains in this process, with a checkpoint after each step."""
    keras.backend.clear_session()
    spec = RunSpec(EXPERIMENT, epochs=6, checkpoint_seconds=1e-9)
    worker = Worker(0, 1, tf.distribute.get_strategy())
    train(make(callbacks=lambda: list(callbacks)), spec, store, worker, Display.quiet)


def test_a_full_and_a_closed_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store, told = Store(str(disk.folder / "run")), []
        for epoch, harm in ((2, disk.fill), (4, disk.close)):
            with pytest.raises(StoreError) as caught:
                _train(store, At(epoch, lambda harm=harm: told.append(harm())))
            text = str(caught.value)
            assert text.startswith(f"Cannot write {store.url}/") and "\n" not in text
            assert f": {told[-1]}; credential: user id {os.geteuid()}" in text
            assert caught.value.exit_code == 2
            assert _step(store) == 4 * epoch + 1
            disk.open()
        _train(store)
        assert [r["step"] for r in read_metrics(store) if r["kind"] == "step"] == list(range(1, 25))
        check_curves(disk.folder / "run")
        _train(Store(str(tmp_path / "undisturbed")))
        assert _losses(store) == _losses(Store(str(tmp_path / "undisturbed")))


@pytest.mark.parametrize("bucket", ["gs"], indirect=True)
def test_a_bucket_that_begins_to_refuse(bucket: Bucket) -> None:
    _check_refused(bucket, Fail(status=403), 2, "permission is denied")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("fail", "code", "what"),
    [
        (Fail(status=403), 2, "permission is denied"),
        (Fail(status=503), 143, "given up after"),
        (Fail(cut="before"), 143, "given up after"),
    ],
)
def test_every_bucket_that_begins_to_refuse(bucket: Bucket, fail: Fail, code: int, what: str) -> None:
    _check_refused(bucket, fail, code, what)


def _check_refused(bucket: Bucket, fail: Fail, code: int, what: str) -> None:
    store = Store(bucket.url(f"refused/{fail.status}"))
    process = start(*TRAIN, "--restarts", 0, "--run", store.url, SLOW_STEP="0.03")
    _wait_for_checkpoint(store, process)
    bucket.proxy.use(always(fail))
    _check_stopped(process, code, store.url, what)
    bucket.proxy.use(lambda number, method, path: None)
    assert 0 < _step(store) < STEPS
    resumed = qflock("resume", store.url, "--experiment", EXPERIMENT)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(store.read("status.json"))["state"] == "finished"
    steps = [record["step"] for record in read_metrics(store) if record["kind"] == "step"]
    assert steps == list(range(1, STEPS + 1))
