"""The programs in examples/ run as a reader runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*command: str, folder: Path) -> str:
    """Standard output of a command that must succeed."""
    finished = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=240)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.mark.parametrize("name", ["expectation.py", "keras_fit.py"])
def test_program_checks_its_own_result(name: str, tmp_path: Path) -> None:
    assert run(sys.executable, os.fspath(EXAMPLES / name), folder=tmp_path)


def test_own_experiment_learns_and_predicts(tmp_path: Path) -> None:
    """The tutorial trains it on two workers, for fewer epochs."""
    experiment = f"{EXAMPLES / 'own_experiment.py'}:experiment"
    qflock = (sys.executable, "-m", "qflock.cli")
    training = ("--epochs", "25", "--learning-rate", "0.05", "--run", "own")
    run(*qflock, "train", experiment, *training, folder=tmp_path)
    printed = run(*qflock, "infer", "own", "--experiment", experiment, folder=tmp_path)
    accuracy = float(printed.rpartition("accuracy ")[2])
    assert accuracy > 0.8
