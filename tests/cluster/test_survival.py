from __future__ import annotations

import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from qflock.cluster.identity import Identity
from qflock.cluster.ports import free_ports
from qflock.training import checkpoints
from qflock.training.store import Store
from tests.cluster.kills import kill_randomly, workers_of
from tests.training.commands import LINEAR, check_curves, command, environment, losses, qflock, records, start

EPOCHS = 60
LINE = f"{LINEAR}:experiment"
WHAT = (LINE, "--epochs", EPOCHS, "--checkpoint-seconds", 0.3)


def _undisturbed(run: Path, epochs: int) -> Path:
    process = start("train", LINE, "--epochs", epochs, "--workers", 3, "--run", run)
    output, _ = process.communicate(timeout=1200)
    assert process.returncode == 0, output
    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _undisturbed(tmp_path_factory.mktemp("undisturbed") / "run", EPOCHS)


def _wait_for_checkpoint(run: Path, *processes: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 200
    while not list((run / "checkpoints").glob("*.json")):
        assert all(process.poll() is None for process in processes), processes[0].communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.05)


def _check(run: Path, expected: Path) -> None:
    """Every step once, with the losses and in the end the weights of the undisturbed run."""
    count = len(losses(expected))
    assert [r["step"] for r in records(run, "step")] == list(range(1, count + 1))
    assert [r["epoch"] for r in records(run, "epoch")] == list(range(1, len(records(expected, "epoch")) + 1))
    np.testing.assert_allclose(losses(run), losses(expected), atol=1e-6)
    mine, theirs = (checkpoints.newest(Store(str(each))) for each in (run, expected))
    assert mine is not None and theirs is not None
    for ours, other in zip(mine.arrays, theirs.arrays, strict=True):
        # Other shares of a batch round otherwise: float32 holds weights of 1 to 1e-7, and 240 steps add up.
        np.testing.assert_allclose(ours, other, rtol=0, atol=1e-6 * max(1, np.abs(other).max()))
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    check_curves(run)


def _survives(tmp_path: Path, expected: Path, kills: int, epochs: int, seed: int) -> list[float]:
    run, steps, temporary = tmp_path / "run", tmp_path / "steps", tmp_path / "temporary"
    temporary.mkdir()
    process = start(
        "train", LINE, "--epochs", epochs, "--checkpoint-seconds", 0.3, "--workers", 3, "--restarts", 30, "--run", run,
        SLOW_STEP="0.03", STEPS_FILE=str(steps), TMPDIR=str(temporary),
    )  # fmt: skip
    try:
        done = kill_randomly(process, steps, kills, random.Random(seed), longest_wait=1.5)
        output, _ = process.communicate(timeout=1200)
    finally:
        process.kill()
    assert process.returncode == 0, output
    assert output.count("was ended by SIGKILL; all workers start again in") == kills
    assert not list(temporary.iterdir())
    _check(run, expected)
    print(*done, sep="\n")
    return [kill.seconds for kill in done]


def test_killed_workers_change_nothing(tmp_path: Path, undisturbed: Path) -> None:
    _survives(tmp_path, undisturbed, kills=2, epochs=EPOCHS, seed=0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_killed_workers_change_nothing(tmp_path: Path) -> None:
    epochs = 300
    expected = _undisturbed(tmp_path / "undisturbed", epochs)
    seconds = _survives(tmp_path, expected, kills=20, epochs=epochs, seed=1)
    shown = f"from kill to the next step: mean {statistics.mean(seconds):.1f} s, longest {max(seconds):.1f} s"
    print(shown)
    assert statistics.mean(seconds) <= 25, shown


def test_a_single_worker_is_started_again_too(tmp_path: Path, undisturbed: Path) -> None:
    run = tmp_path / "run"
    process = start("train", *WHAT, "--run", run, SLOW_STEP="0.01")
    _wait_for_checkpoint(run, process)
    workers_of(process)[0].kill()
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    assert "worker 0 was ended by SIGKILL; it starts again in 0.5 s from the newest checkpoint" in output
    _check(run, undisturbed)


@pytest.mark.parametrize(("number", "workers", "code"), [(signal.SIGINT, 2, 130), (signal.SIGTERM, 1, 143)])
def test_stopped_and_resumed_with_other_workers(
    tmp_path: Path, undisturbed: Path, number: int, workers: int, code: int
) -> None:
    run = tmp_path / "run"
    process = start("train", *WHAT, "--workers", workers, "--run", run, SLOW_STEP="0.03")
    _wait_for_checkpoint(run, process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == workers
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == code, output
    assert not [child for child in children if child.is_running()]
    assert json.loads((run / "status.json").read_text())["state"] == "preempted"
    resumed = qflock("resume", run, "--workers", 3 - workers, "--experiment", LINE)
    assert resumed.returncode == 0, resumed.stderr
    _check(run, undisturbed)


def test_a_run_has_one_writer_at_a_time(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("train", *WHAT, "--run", run, SLOW_STEP="0.1")
    try:
        _wait_for_checkpoint(run, process)
        second = qflock("resume", run, "--experiment", LINE)
        assert second.returncode == 2
        assert f"is being trained by process {process.pid} of this machine" in second.stderr
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("seconds", [60, 1e-9])  # the latter stores every step, the one that failed too
def test_the_same_failure_twice_ends_the_run(tmp_path: Path, seconds: float) -> None:
    arguments = (LINE, "--epochs", EPOCHS, "--checkpoint-seconds", seconds, "--run", tmp_path / "run")
    done = qflock("train", *arguments, FAIL_EPOCH="3")
    assert done.returncode == 2
    assert "ZeroDivisionError: made to fail; the same happened before at step 16" in done.stderr
    assert 'raise ZeroDivisionError("made to fail")' in done.stderr


def test_signals_of_an_experiment_take_none_from_the_training(tmp_path: Path) -> None:
    run = tmp_path / "run"
    unruly = Path(__file__).with_name("unruly.py")
    what = ("train", f"{unruly}:experiment", "--epochs", 1000, "--checkpoint-seconds", 0.3)
    process = start(*what, "--run", run, SLOW_STEP="0.02")
    _wait_for_checkpoint(run, process)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 143, output
    assert f"a process of the experiment ended with -{signal.SIGTERM}" in output and "taken" not in output
    assert json.loads((run / "status.json").read_text())["state"] == "preempted"


def test_trains_without_standard_streams(tmp_path: Path) -> None:
    words = " ".join(map(shlex.quote, command("train", LINE, "--epochs", 2, "--run", tmp_path / "run")))
    done = subprocess.run(["bash", "-c", f"{words} <&- >&- 2>&-"], env=environment(), timeout=100)
    assert done.returncode == 0
    assert losses(tmp_path / "run")


def _members(run: Path, count: int, **more: str) -> list[subprocess.Popen[str]]:
    """Workers that nobody supervises, as on a cluster."""
    addresses = tuple(f"localhost:{port}" for port in free_ports(count))
    threads = {"QFLOCK_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return [
        start(
            "train", *WHAT, "--run", run, TF_CONFIG=Identity(addresses, index).tf_config(), **threads, **more
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.soak)])
def test_without_a_launcher_all_leave_with_a_code_that_says_why(tmp_path: Path, number: int) -> None:
    run = tmp_path / "run"
    chief, peer = _members(run, 2, SLOW_STEP="0.1")
    try:
        _wait_for_checkpoint(run, chief, peer)
        victim, other = (chief, peer) if number == signal.SIGKILL else (peer, chief)
        victim.send_signal(number)
        gone = time.monotonic()
        output, _ = other.communicate(timeout=60)
        assert time.monotonic() - gone < 15
        assert other.returncode == 143, output
        if number == signal.SIGKILL:
            assert "error: another worker was lost" in output
        else:
            assert victim.wait(timeout=10) == 130
            assert "as asked; the state is stored" in output
    finally:
        chief.kill()
        peer.kill()


def test_a_missing_peer_is_named(tmp_path: Path) -> None:
    mine, other = free_ports(2)
    identity = Identity((f"localhost:{mine}", f"localhost:{other}"), 0)
    done = qflock(
        "train", *WHAT, "--run", tmp_path / "run", "--start-timeout", 2, TF_CONFIG=identity.tf_config()
    )
    assert done.returncode == 143
    assert f"worker 1 (localhost:{other})" in done.stderr
