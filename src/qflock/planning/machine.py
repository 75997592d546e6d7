"""Measures this machine: a training of one worker, then one of two that share it."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import FrameType

from qflock.cluster.launcher import AGAIN, INTERRUPTED
from qflock.cluster.processes import die_with_parent
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
        arguments = [str(question), str(answer), str(workers)]
        code, said = _run([sys.executable, "-m", "qflock.planning.measuring", *arguments])
        if code or not answer.exists():
            error = answer.with_suffix(".error")
            why = error.read_text() if error.exists() else said.strip()[-500:] or f"exit code {code}"
            raise ConfigurationError(f"This training must run to be measured, but it failed: {why}")
        return Measured.from_json(answer.read_text())


def _run(command: list[str]) -> tuple[int, str]:
    """Exit code and output of a command, which is asked to stop when this process is."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        preexec_fn=partial(die_with_parent, signal.SIGTERM),
    )  # fmt: skip
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)
        process.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        said, _ = process.communicate()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopping:
        raise SystemExit(INTERRUPTED if stopping[0] == signal.SIGINT else AGAIN)
    return process.returncode, said
