"""Whole trainings whose run lives in a bucket."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from qflock.training.metrics_log import read_metrics
from qflock.training.store import Store
from tests.stores.buckets import Bucket
from tests.training.commands import qflock, start

EPOCHS, STEPS = 60, 240
QCNN = (
    *("train", "qcnn", "--qubits", 4, "--examples", 20, "--batch-size", 4),
    *("--epochs", EPOCHS, "--checkpoint-seconds", 0.2),
)


def _losses(store: Store) -> list[float]:
    records = [record for record in read_metrics(store) if record["kind"] == "step"]
    assert [record["step"] for record in records] == list(range(1, len(records) + 1))
    return [record["loss"] for record in records]


def _wait_for_checkpoint(store: Store) -> None:
    end = time.monotonic() + 240
    while not [name for name in store.list("checkpoints") if name.endswith(".json")]:
        assert time.monotonic() < end
        time.sleep(0.1)


def _stop_and_resume(bucket: Bucket) -> Store:
    """Trains until there is a checkpoint, then goes on to the end."""
    store = Store(bucket.url("resumed/first"))
    process = start(*QCNN, "--workers", 2, "--run", store.url)
    _wait_for_checkpoint(store)
    os.kill(process.pid, signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 143, output
    listed = qflock("runs", bucket.url("resumed"))
    assert listed.stdout.splitlines()[1].split()[:2] == ["first", "preempted"], listed
    assert 0 < len(_losses(store)) < STEPS
    resumed = qflock("resume", store.url, "--workers", 2)
    assert resumed.returncode == 0, resumed.stderr
    return store


def _check_finished(store: Store) -> None:
    assert json.loads(store.read("status.json"))["state"] == "finished"
    assert len(_losses(store)) == STEPS
    assert [name.split(".")[0] for name in store.list("tensorboard")] == ["events"]


def _check_inference(store: Store) -> None:
    inferred = qflock("infer", store.url)
    assert inferred.returncode == 0, inferred.stderr
    last = [record for record in read_metrics(store) if record["kind"] == "epoch"][-1]
    error = float(inferred.stdout.split("mean squared error ")[1].split()[0])
    assert error == pytest.approx(last["val_loss"], abs=1e-6)
    assert len(store.read("predictions.csv").splitlines()) == 1 + 6


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_trained_by_two_workers_and_inferred(bucket: Bucket) -> None:
    store = Store(bucket.url("trained/whole"))
    done = qflock(*QCNN, "--workers", 2, "--run", store.url)
    assert done.returncode == 0, done.stderr
    _check_finished(store)
    _check_inference(store)
    listed = qflock("runs", bucket.url("trained"))
    assert listed.stdout.splitlines()[1].split()[:3] == ["whole", "finished", str(STEPS)], listed


@pytest.mark.soak
def test_every_bucket_ends_like_a_folder(bucket: Bucket, tmp_path: Path) -> None:
    done = qflock(*QCNN, "--workers", 2, "--run", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    store = _stop_and_resume(bucket)
    _check_finished(store)
    _check_inference(store)
    np.testing.assert_allclose(_losses(store), _losses(Store(str(tmp_path / "run"))), atol=1e-6)
