"""Imported by every Python process that starts with this folder on its path: times trainings, with or without curves.

Tests do not collect it, since to import it changes the training.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from qflock.training import loop
from qflock.training.observation import Observation


class NoCurves:
    """Takes everything and writes nothing."""

    def __init__(self, *arguments: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


def timed(*arguments: Any) -> Any:
    started = time.perf_counter()
    values = train(*arguments)
    with Path(os.environ["SECONDS_FILE"]).open("a") as file:
        file.write(f"{time.perf_counter() - started}\n")
    return values


def metrics_only(steps: Any, *arguments: Any) -> Observation:
    metrics = steps.take_metrics(steps.sum_over_workers(steps.metric_states()))
    return Observation((), {}, {}, metrics)


train, loop.train = loop.train, timed
if "WITHOUT_CURVES" in os.environ:
    replaced: dict[str, Any] = {
        "Curves": NoCurves,
        "observe": metrics_only,
        "watch_readouts": lambda model: [],
        "described": lambda *arguments: None,
    }
    vars(loop).update(replaced)
