"""Measures this machine: a training of one worker, then one of two that share it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from qflock.errors import ConfigurationError
from qflock.planning.measured import Measured, Question
from qflock.training.spec import RunSpec


def measure_machine(spec: RunSpec, trusted: str | None, workers: int, seconds: float) -> Measured:
    """Starts measuring processes as a training would, and returns what the chief saw.

    Args:
        spec: The training; its examples should be few.
        trusted: The `file.py:name` of the command line, for an experiment of the user's own.
        workers: Processes that share this machine.
        seconds: How long measuring may take, about, without start-up.

    Raises:
        ConfigurationError: If the training cannot be measured; says why.
    """
    with tempfile.TemporaryDirectory(prefix="qflock-plan-") as folder:
        question, answer = Path(folder) / "question.json", Path(folder) / "answer.json"
        question.write_text(Question(spec, trusted, seconds, asked=time.time()).to_json())
        # In a process of its own, since this one may have computed already, which the launcher's must not have.
        command = [
            sys.executable,
            "-m",
            "qflock.planning.measuring",
            str(question),
            str(answer),
            str(workers),
        ]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode or not answer.exists():
            error, said = answer.with_suffix(".error"), (done.stdout + done.stderr).strip()[-500:]
            why = error.read_text() if error.exists() else said or f"exit code {done.returncode}"
            raise ConfigurationError(f"This training must run to be measured, but it failed: {why}")
        return Measured.from_json(answer.read_text())
