"""What a run was started with: its command, versions and machine, stored in the run for whoever repeats it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shlex
import sys
from typing import Any

from qflock.engine.processor import best_instruction_set
from qflock.errors import QflockError
from qflock.training.store import Store

NAME = "environment.json"
PACKAGES = ("qflock", "cirq-core", "numpy", "keras", "tensorflow", "tensorflow-cpu", "tensorboard")


def record_environment(store: Store, workers: int) -> None:
    """Stores how the run was started; called once, when the run is made."""
    store.write(NAME, (json.dumps(_environment(workers), indent=2) + "\n").encode())


def read_environment(store: Store) -> dict[str, Any]:
    """What `record_environment` has stored; empty where there is nothing readable, as in runs of older versions."""
    try:
        found = json.loads(store.read(NAME)) if store.exists(NAME) else {}
    except (QflockError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _environment(workers: int) -> dict[str, Any]:
    return {
        "command": shlex.join(["qflock", *sys.argv[1:]]),
        "workers": workers,
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": {
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "instruction set": os.environ.get("QFLOCK_INSTRUCTION_SET") or best_instruction_set(),
        },
    }


def _versions() -> dict[str, str]:
    """Of the packages that are installed; TensorFlow goes by either of two names."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
