"""A run as a report sees it: everything is optional but the spec and at least one value that was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from qflock.errors import RunError
from qflock.training.environment import read_environment
from qflock.training.metrics_log import NAME
from qflock.training.run import Status, load_spec, read_status
from qflock.training.spec import RunSpec
from qflock.training.store import Store

Record = dict[str, float]


@dataclass(frozen=True)
class RunRecord:
    """What was stored of a run.

    Args:
        store: Of the run.
        label: Names the run among those of one page.
        spec: What was asked for.
        status: Where it stands.
        environment: Command, versions and machine; empty where they were not stored.
        steps: One record per step: "step", "epoch", "loss" and whatever else was measured.
        epochs: One record per epoch.
        unreadable: Lines of the log of metrics that could not be read.
    """

    store: Store
    label: str
    spec: RunSpec
    status: Status
    environment: dict[str, Any]
    steps: tuple[Record, ...]
    epochs: tuple[Record, ...]
    unreadable: int

    def metric_names(self) -> list[str]:
        """Names of what was measured at the ends of epochs, in the order in which they appear."""
        names = dict.fromkeys(name for record in self.epochs for name in record)
        return [name for name in names if name not in ("epoch", "step")]


def read_runs(urls: list[str]) -> list[RunRecord]:
    """The runs at some folders or URLs, with labels that differ.

    Raises:
        RunError: If one is no run, is of another version, or has no metrics.
    """
    stores = [Store(url) for url in urls]
    names = [store.url.rsplit("/", 1)[-1] for store in stores]
    labels = names if len(set(names)) == len(names) else [store.url for store in stores]
    return [_read_run(store, label) for store, label in zip(stores, labels, strict=True)]


def _read_run(store: Store, label: str) -> RunRecord:
    spec, status = load_spec(store), read_status(store)
    records, unreadable = _records(store)
    if not records["step"] and not records["epoch"]:
        raise RunError(
            f"{store.url} must hold measured values to report, but has none in {NAME} yet "
            f"(it is {status.state} at step {status.step}); wait for its first checkpoint"
        )
    steps, epochs = tuple(records["step"].values()), tuple(records["epoch"].values())
    return RunRecord(store, label, spec, status, read_environment(store), steps, epochs, unreadable)


def _records(store: Store) -> tuple[dict[str, dict[int, Record]], int]:
    """Steps and epochs by number, and how many lines were left out: a copy of a live run may end within a line."""
    found: dict[str, dict[int, Record]] = {"step": {}, "epoch": {}}
    paces: list[Record] = []
    unreadable = 0
    for line in store.read(NAME).splitlines() if store.exists(NAME) else []:
        try:
            record = json.loads(line)
            kind = record["kind"]
            numbers = {k: float(v) for k, v in record.items() if isinstance(v, (int, float))}
            if kind == "pace":
                paces.append(numbers)
            elif kind in found:  # other kinds are left to whoever knows them
                found[kind][int(numbers[kind])] = {"step": float("nan"), "epoch": float("nan"), **numbers}
        except (ValueError, KeyError, TypeError, AttributeError):
            unreadable += 1
    for pace in paces:
        found["epoch"].get(int(pace.get("epoch", -1)), {}).update(_pace(pace))
    return found, unreadable


def _pace(record: Record) -> Record:
    """How fast each worker was, and where the time of the chief's mean step went."""
    worker = int(record.get("worker", 0))
    rates = {f"{k}/worker {worker}": v for k, v in record.items() if k.endswith("_per_second")}
    parts = {k: v for k, v in record.items() if k.startswith("step_seconds/")} if worker == 0 else {}
    return rates | parts
