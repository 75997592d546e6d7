"""Runs the command line as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

LINEAR = Path(__file__).with_name("linear.py")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "qflock.cli", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "TF_CONFIG"} | more


def qflock(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(**more), capture_output=True, text=True, timeout=150, check=False
    )


class Started(subprocess.Popen[str]):
    """A command at work. Its output goes to a file: a pipe that nobody reads would fill up and hold it back."""

    def __init__(self, *arguments: object, **more: str) -> None:
        self._output = tempfile.NamedTemporaryFile("w")  # noqa: SIM115 - open as long as the command writes
        super().__init__(
            command(*arguments),
            env=environment(**more),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """What it has printed, standard error included, once it has ended."""
        self.wait(timeout)
        return self.output(), ""

    def output(self) -> str:
        """What it has printed so far, standard error included."""
        return Path(self._output.name).read_text()


def start(*arguments: object, **more: str) -> Started:
    return Started(*arguments, **more)


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [r for r in map(json.loads, lines) if r["kind"] == kind]


def losses(run: Path) -> list[float]:
    return [r["loss"] for r in records(run, "step")]


def curves(run: Path) -> dict[str, dict[int, float]]:
    """Every curve of a run, read back from all of its event files; fails where anything comes twice."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    found: dict[str, dict[int, Any]] = {}
    for file in sorted((run / "tensorboard").glob("events*")):
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                curve = found.setdefault(value.tag, {})
                assert event.step not in curve, f"{value.tag} has step {event.step} twice"
                curve[event.step] = make_ndarray(value.tensor)
    return {tag: curve for tag, curve in found.items() if all(number.ndim == 0 for number in curve.values())}


def check_curves(run: Path) -> None:
    """The curves hold what `metrics.jsonl` holds, each step once."""
    found, hidden = curves(run), ("kind", "epoch", "step", "worker")
    assert found.pop("step_loss") == pytest.approx({r["step"]: r["loss"] for r in records(run, "step")})
    expected: dict[str, dict[int, float]] = {}
    for kind in ("epoch", "pace"):
        for record in records(run, kind):
            worker = f"/worker{record['worker']}" if kind == "pace" else ""
            for name, value in record.items():
                if name not in hidden:
                    expected.setdefault(name + worker, {})[record["step"]] = value
    restarts = {r["step"]: r["restarts"] for r in records(run, "restart")}
    assert found.pop("restarts", {}) == restarts
    assert found == {name: pytest.approx(curve) for name, curve in expected.items()}
