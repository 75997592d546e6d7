"""`metrics.jsonl`: a line for every step and epoch, each exactly once, for each worker's pace and for restarts."""

from __future__ import annotations

import json
from typing import Any

from qflock.training.state import Position
from qflock.training.store import Store

NAME = "metrics.jsonl"


class MetricsLog:
    """Collects records and stores them as a whole file, since object stores cannot append."""

    def __init__(self, store: Store, position: Position | None) -> None:
        self._store = store
        self._lines = _lines_before(store, position) if position is not None else []
        self._dirty = False

    def step(self, step: int, epoch: int, loss: float) -> None:
        """Adds a step; counted from 1, as is the epoch."""
        self._add({"kind": "step", "step": step, "epoch": epoch, "loss": loss})

    def epoch(self, epoch: int, step: int, values: dict[str, float]) -> None:
        """Adds the end of an epoch."""
        self._add({"kind": "epoch", "epoch": epoch, "step": step, **values})

    def restart(self, step: int, epoch: int, workers: int) -> int:
        """Adds that the training went on after `step`; returns how often that has happened."""
        self._add({"kind": "restart", "step": step, "epoch": epoch, "workers": workers})
        return sum(json.loads(line)["kind"] == "restart" for line in self._lines)

    def pace(self, epoch: int, step: int, worker: int, values: dict[str, float]) -> None:
        """Adds how fast a worker was during an epoch."""
        self._add({"kind": "pace", "epoch": epoch, "step": step, "worker": worker, **values})

    def flush(self) -> None:
        """Stores what there is."""
        if self._dirty:
            self._store.write(NAME, "".join(f"{line}\n" for line in self._lines).encode())
            self._dirty = False

    def epochs(self) -> list[dict[str, Any]]:
        """The records of all epochs so far."""
        return [r for r in map(json.loads, self._lines) if r["kind"] == "epoch"]

    def _add(self, record: dict[str, Any]) -> None:
        self._lines.append(json.dumps(record))
        self._dirty = True


def read_metrics(store: Store) -> list[dict[str, Any]]:
    """All records of a run; none if it has not stored any yet."""
    if not store.exists(NAME):
        return []
    return [json.loads(line) for line in store.read(NAME).splitlines()]


def _lines_before(store: Store, position: Position) -> list[str]:
    """What a resumed run does again is dropped."""
    kept = []
    for record in read_metrics(store):
        done = (
            record["step"] <= position.step
            if record["kind"] == "step"
            else record["epoch"] <= position.epochs
        )
        if done:
            kept.append(json.dumps(record))
    return kept
