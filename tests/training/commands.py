"""Runs the command line as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
