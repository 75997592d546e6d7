"""Measures this machine: a training of one worker, then one of two that share it."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from pathlib import Path

from qflock.cluster.launcher import Launch, launch
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
        command = [sys.executable, "-m", "qflock.planning.measuring", str(question), str(answer)]
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = launch(Launch(command, workers, restarts=0))
        if code or not answer.exists():
            error = answer.with_suffix(".error")
            why = (
                error.read_text() if error.exists() else said.getvalue().strip()[-500:] or f"exit code {code}"
            )
            raise ConfigurationError(f"This training must run to be measured, but it failed: {why}")
        return Measured.from_json(answer.read_text())
