"""`metrics.jsonl`: one line for every step and every epoch, each exactly once, also over restarts."""

from __future__ import annotations

import json
from typing import Any

from qflock.errors import RunError
from qflock.training.state import Position
from qflock.training.store import Store

NAME = "metrics.jsonl"


class MetricsLog:
    """Collects records and stores them as a whole file, since object stores cannot append."""

    def __init__(self, store: Store, position: Position | None) -> None:
        self._store = store
        self._lines = _lines_before(store, position) if position is not None else []
        self._dirty = False

    def step(self, step: int, epoch: int, loss: float) -> dict[str, Any]:
        """Adds a step, counted from 1 as is the epoch; returns the record."""
        return self._add({"kind": "step", "step": step, "epoch": epoch, "loss": loss})

    def epoch(self, epoch: int, step: int, values: dict[str, float]) -> dict[str, Any]:
        """Adds the end of an epoch; returns the record."""
        return self._add({"kind": "epoch", "epoch": epoch, "step": step, **values})

    def flush(self) -> None:
        """Stores what there is."""
        if self._dirty:
            self._store.write(NAME, "".join(f"{line}\n" for line in self._lines).encode())
            self._dirty = False

    def records(self) -> list[dict[str, Any]]:
        """All records so far."""
        return [json.loads(line) for line in self._lines]

    def _add(self, record: dict[str, Any]) -> dict[str, Any]:
        self._lines.append(json.dumps(record))
        self._dirty = True
        return record


def read_metrics(store: Store) -> list[dict[str, Any]]:
    """All records of a run; none if it has not stored any yet."""
    if not store.exists(NAME):
        return []
    try:
        return [_checked(json.loads(line)) for line in store.read(NAME).splitlines()]
    except (ValueError, KeyError, TypeError):
        raise RunError(
            f"{store.url}/{NAME} must hold one record of a step or an epoch on each line, but cannot be read"
        ) from None


def _checked(record: Any) -> dict[str, Any]:
    if record["kind"] not in ("step", "epoch") or not all(type(record[k]) is int for k in ("step", "epoch")):
        raise ValueError(record)
    return dict(record)


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
