"""A process is killed inside of its checkpoint writes, at every boundary in turn; the newest checkpoint stays whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from qflock.training import checkpoints
from qflock.training.store import Store
from tests.stores.buckets import Bucket
from tests.stores.faulty_proxy import Fail
from tests.training.commands import LINEAR, check_curves, environment, losses, qflock
from tests.training.killed_writer import KEEP, PRINT, state_of

SAVES = 3
KILLED_TRAININGS = 20


def _writer(url: str, operation: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.training.killed_writer", url, str(SAVES), str(operation)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


def _numbers(output: str, word: str) -> list[int]:
    return [int(line.split()[1]) for line in output.splitlines() if line.startswith(word)]


def _check(store: Store, output: str, before: int) -> int:
    """The newest checkpoint is the last one that was acknowledged, or the one that was being written, and whole."""
    (found,) = _numbers(output, "found")
    assert found == before
    acknowledged = max(_numbers(output, "stored"), default=found)
    newest = checkpoints.newest(store, PRINT)
    step = newest.position.step if newest else 0
    assert step in (acknowledged, acknowledged + 1)
    if newest:
        for mine, theirs in zip(newest.arrays, state_of(step).arrays, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    return step


def _kill_in_folder(folder: Path, operations: list[int]) -> None:
    store, step = Store(str(folder)), 0
    for operation in operations:
        process = _writer(store.url, operation)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, f"no operation {operation}: {output}"
        step = _check(store, output, step)
    process = _writer(store.url, 0)
    output, _ = process.communicate(timeout=60)
    _check(store, output, step)
    assert len(store.list(checkpoints.FOLDER)) == 2 * KEEP  # nothing that killed writers have left remains


def test_ten_kills_inside_of_checkpoint_writes(tmp_path: Path) -> None:
    _kill_in_folder(tmp_path, list(range(1, 41, 4)))


@pytest.mark.soak
def test_a_hundred_kills_inside_of_checkpoint_writes(tmp_path: Path) -> None:
    _kill_in_folder(tmp_path, [*range(1, 45), *range(1, 45), *range(1, 13)])


def _killed(operation: int, *arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.killed_training", str(operation), *map(str, arguments)],
        env=environment(SLOW_STEP="0.01"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.soak
def test_a_training_killed_inside_of_its_checkpoint_writes_ends_like_an_undisturbed_one(
    tmp_path: Path,
) -> None:
    experiment = f"{LINEAR}:experiment"
    train = ("train", experiment, "--epochs", 200, "--checkpoint-seconds", 0.05, "--run")
    run = tmp_path / "run"
    _killed(1, *train, run)
    for operation in np.random.default_rng(0).integers(2, 60, size=KILLED_TRAININGS).tolist():
        _killed(operation, "resume", run, "--experiment", experiment)
    for done in (qflock("resume", run, "--experiment", experiment), qflock(*train, tmp_path / "undisturbed")):
        assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(run), losses(tmp_path / "undisturbed"), atol=1e-6)
    check_curves(run)


def _kill_at_request(
    process: subprocess.Popen[str], number: int, reached: bool
) -> Callable[[int, str, str], Fail | None]:
    """The plan that kills the writer at the given change of the bucket, before or after it has happened there."""
    changes = 0

    def plan(request: int, method: str, path: str) -> Fail | None:
        nonlocal changes
        changes += method in ("PUT", "POST", "DELETE")
        if changes != number:
            return None if changes < number else Fail(cut="before")
        process.kill()
        process.wait()
        return Fail(cut="after" if reached else "before")

    return plan


def _kill_in_bucket(bucket: Bucket, changes: list[int]) -> None:
    store, step = Store(bucket.url("killed")), 0
    for place, number in enumerate(changes):
        process = _writer(store.url, 0)
        bucket.proxy.use(_kill_at_request(process, number, reached=place % 2 == 0))
        output, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, output
        bucket.proxy.use(lambda number, method, path: None)
        step = _check(store, output, step)


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_kills_while_a_bucket_is_written(bucket: Bucket) -> None:
    _kill_in_bucket(bucket, [2, 1, 3, 4])


@pytest.mark.soak
def test_a_hundred_kills_while_a_bucket_is_written(bucket: Bucket) -> None:
    _kill_in_bucket(bucket, [*range(1, 11)] * 10)
