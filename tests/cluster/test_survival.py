from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.training.commands import LINEAR, check_curves, losses, qflock, records, start

EPOCHS = 40
WHAT = (f"{LINEAR}:experiment", "--epochs", EPOCHS, "--checkpoint-seconds", 0.3)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    done = qflock("train", *WHAT, "--run", run)
    assert done.returncode == 0, done.stderr
    return losses(run)


def _workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return sorted(psutil.Process(process.pid).children(), key=lambda p: p.pid)


def _wait_for_checkpoint(run: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 90
    while not list((run / "checkpoints").glob("*.json")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.05)


def _check(run: Path, expected: list[float]) -> None:
    assert [r["step"] for r in records(run, "step")] == list(range(1, len(expected) + 1))
    assert [r["epoch"] for r in records(run, "epoch")] == list(range(1, EPOCHS + 1))
    np.testing.assert_allclose(losses(run), expected, atol=1e-6)
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    check_curves(run)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_worker_changes_nothing(tmp_path: Path, undisturbed: list[float], victim: int) -> None:
    run = tmp_path / "run"
    process = start("train", *WHAT, "--workers", 2, "--run", run, SLOW_STEP="0.03")
    _wait_for_checkpoint(run, process)
    _workers(process)[victim].kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert f"worker {victim} was ended by SIGKILL; all workers start again" in output
    _check(run, undisturbed)


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_stopped_and_resumed_with_other_workers(
    tmp_path: Path, undisturbed: list[float], number: int, workers: int
) -> None:
    run = tmp_path / "run"
    process = start("train", *WHAT, "--workers", workers, "--run", run, SLOW_STEP="0.03")
    _wait_for_checkpoint(run, process)
    children = _workers(process)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 143, output
    assert not [child for child in children if child.is_running()]
    assert json.loads((run / "status.json").read_text())["state"] == "preempted"
    resumed = qflock("resume", run, "--workers", 3 - workers, "--experiment", WHAT[0])
    assert resumed.returncode == 0, resumed.stderr
    _check(run, undisturbed)


def test_the_same_failure_twice_ends_the_run(tmp_path: Path) -> None:
    done = qflock("train", *WHAT, "--workers", 2, "--run", tmp_path / "run", FAIL_EPOCH="3")
    assert done.returncode == 2
    assert "ZeroDivisionError: made to fail; the same happened before at step 16" in done.stderr
    assert 'raise ZeroDivisionError("made to fail")' in done.stderr


def test_a_missing_peer_is_named(tmp_path: Path) -> None:
    from qflock.cluster.identity import Identity
    from qflock.cluster.ports import free_ports

    mine, other = free_ports(2)
    identity = Identity((f"localhost:{mine}", f"localhost:{other}"), 0)
    done = qflock(
        "train", *WHAT, "--run", tmp_path / "run", "--start-timeout", 2, TF_CONFIG=identity.tf_config()
    )
    assert done.returncode == 143
    assert f"worker 1 (localhost:{other})" in done.stderr
