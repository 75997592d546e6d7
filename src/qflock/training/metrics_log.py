"""`metrics.jsonl`: a line for every step and epoch, each exactly once, for each worker's pace and for restarts."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from qflock.errors import RunError, StoreError
from qflock.training.faults import fault_of
from qflock.training.state import Position
from qflock.training.store import Store

log = logging.getLogger("qflock")
NAME = "metrics.jsonl"
# What the records of each kind hold besides step and epoch, at least.
KINDS: dict[str, dict[str, tuple[type, ...]]] = {
    "step": {"loss": (int, float)},
    "epoch": {},
    "pace": {"worker": (int,)},
    "restart": {"restarts": (int,)},
}


class MetricsLog:
    """Collects records in a local file, whose copy is stored as a whole, since object stores cannot append.

    Args:
        store: Of the run.
        position: Where the run goes on: what it will do again is dropped. Nothing for a new run.

    Raises:
        RunError: If the store's file cannot be read.
        StoreError: From every method, if the local disk or the store refuses.
    """

    def __init__(self, store: Store, position: Position | None) -> None:
        self._store = store
        before = read_metrics(store) if position else []
        if position:
            known = {r["step"] for r in before if r["kind"] == "step" and r["step"] <= position.step}
            if len(known) < position.step:
                log.warning("%s/%s has %d of %d steps only", store.url, NAME, len(known), position.step)
        self._restarts = max((r["restarts"] for r in before if r["kind"] == "restart"), default=0)
        self._dirty = False
        try:
            # Not in memory: a long run has a hundred bytes for each of millions of steps.
            number, name = tempfile.mkstemp(prefix="qflock-metrics-", suffix=".jsonl")
        except OSError as error:
            raise _refused(error) from error
        self._path, self._file = Path(name), os.fdopen(number, "w")
        for record in before:
            if position and _is_done(record, position):
                self._add(record)

    def step(self, step: int, epoch: int, loss: float) -> dict[str, Any]:
        """Adds a step, counted from 1 as is the epoch; returns the record."""
        return self._add({"kind": "step", "step": step, "epoch": epoch, "loss": loss})

    def epoch(self, epoch: int, step: int, values: dict[str, float]) -> dict[str, Any]:
        """Adds the end of an epoch; returns the record."""
        return self._add({"kind": "epoch", "epoch": epoch, "step": step, **values})

    def restart(self, step: int, epoch: int, workers: int) -> None:
        """Adds that the training went on after `step`, and how often it has gone on so far."""
        self._restarts += 1
        self._add(
            {"kind": "restart", "step": step, "epoch": epoch, "workers": workers, "restarts": self._restarts}
        )

    def pace(self, epoch: int, step: int, worker: int, values: dict[str, float]) -> dict[str, Any]:
        """Adds how fast a worker was during an epoch; returns the record."""
        return self._add({"kind": "pace", "epoch": epoch, "step": step, "worker": worker, **values})

    def flush(self) -> None:
        """Stores what there is."""
        if self._dirty:
            self._write_out()
            self._store.put(NAME, self._path)
            self._dirty = False

    def records(self) -> list[dict[str, Any]]:
        """All records so far."""
        self._write_out()
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def close(self) -> None:
        """Removes the local file."""
        with suppress(OSError):  # what a full disk has refused is told already
            self._file.close()
        self._path.unlink(missing_ok=True)

    def _add(self, record: dict[str, Any]) -> dict[str, Any]:
        try:
            self._file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise _refused(error) from error
        self._dirty = True
        return record

    def _write_out(self) -> None:
        try:
            self._file.flush()
            self._path.stat()
        except OSError as error:
            raise _refused(error) from error


def read_metrics(store: Store) -> list[dict[str, Any]]:
    """All records of a run; none if it has not stored any yet."""
    if not store.exists(NAME):
        return []
    records = []
    for number, line in enumerate(store.read(NAME).splitlines(), start=1):
        try:
            records.append(_checked(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            raise RunError(
                f"{store.url}/{NAME} must hold one record of a step or an epoch on each line, but line {number} cannot be "
                "read; remove that line, or the file to go on without its records"
            ) from None
    return records


def _checked(record: Any) -> dict[str, Any]:
    fields = {"step": (int,), "epoch": (int,), **KINDS[str(record["kind"])]}
    if not all(type(record[name]) in types for name, types in fields.items()):
        raise ValueError(record)
    return dict(record)


def _is_done(record: dict[str, Any], position: Position) -> bool:
    """Whether a run that goes on at `position` does not do it again; a restart belongs to the step that follows."""
    if record["kind"] == "step":
        return bool(record["step"] <= position.step)
    if record["kind"] == "restart":
        return bool(record["step"] < position.step)
    return bool(record["epoch"] <= position.epochs)


def _refused(error: OSError) -> StoreError:
    return StoreError(
        f"Cannot write {NAME} in TMPDIR: {fault_of(error, local=True).text}; make room there, or use another TMPDIR"
    )
