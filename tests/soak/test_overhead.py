"""What is written for TensorBoard costs little of a training's time."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import pytest

from tests.training.commands import qflock

PAIRS = 5
TIMED = Path(__file__).parent / "timed_training"
PATH = os.pathsep.join([str(TIMED), os.environ.get("PYTHONPATH", "")])


def seconds(run: Path, **more: str) -> float:
    """Of the training of `make demo`: the longer one of its two workers."""
    file = run.with_suffix(".seconds")
    demo = ("qcnn", "--qubits", 8, "--examples", 160, "--epochs", 50, "--workers", 2, "--quiet", "--run", run)
    done = qflock("train", *demo, PYTHONPATH=PATH, SECONDS_FILE=str(file), **more)
    assert done.returncode == 0, done.stderr
    times = [float(line) for line in file.read_text().splitlines()]
    assert len(times) == 2
    return max(times)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_tensorboard_costs_at_most_five_percent(tmp_path: Path) -> None:
    pairs = [
        (seconds(tmp_path / f"written-{pair}"), seconds(tmp_path / f"bare-{pair}", WITHOUT_CURVES="1"))
        for pair in range(PAIRS)
    ]
    assert list((tmp_path / "written-0" / "tensorboard").iterdir())
    assert not (tmp_path / "bare-0" / "tensorboard").exists()
    written, bare = map(statistics.median, zip(*pairs, strict=True))
    print(f"with curves {written:.2f} s, without {bare:.2f} s, {written / bare - 1:+.1%}; pairs {pairs}")
    assert written / bare <= 1.05
