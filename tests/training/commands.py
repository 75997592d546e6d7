"""Runs the command line as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


def start(*arguments: object, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [r for r in map(json.loads, lines) if r["kind"] == kind]


def losses(run: Path) -> list[float]:
    return [r["loss"] for r in records(run, "step")]


def curves(run: Path) -> dict[str, dict[int, float]]:
    """Every curve of a run, read back from all of its event files; fails where a step comes twice."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    found: dict[str, dict[int, float]] = {}
    for file in sorted((run / "tensorboard").iterdir()):
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                curve = found.setdefault(value.tag, {})
                assert event.step not in curve, f"{value.tag} has step {event.step} twice"
                curve[event.step] = float(make_ndarray(value.tensor))
    return found


def check_curves(run: Path) -> None:
    """The curves hold what `metrics.jsonl` holds, each step once."""
    found = curves(run)
    assert found.pop("step/loss") == pytest.approx({r["step"]: r["loss"] for r in records(run, "step")})
    epochs = records(run, "epoch")
    expected = {name: {r["step"]: r[name] for r in epochs} for name in epochs[0]}
    for name in ("kind", "epoch", "step"):
        del expected[name]
    assert set(found) == set(expected)
    for name, curve in found.items():
        assert curve == pytest.approx(expected[name])
