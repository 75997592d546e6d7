"""What a resumed run shows of its past: the records of `metrics.jsonl`, and the histograms of its older event files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.histogram.metadata import PLUGIN_NAME as HISTOGRAMS

from qflock.training.events import read_events, scalars
from qflock.training.store import Store

STEP_LOSS = "step_loss"


def record_event(record: Mapping[str, Any]) -> Event:
    """A record of `metrics.jsonl` as curves.

    Example:
        >>> [v.tag for v in record_event({"kind": "step", "step": 3, "epoch": 1, "loss": 0.5}).summary.value]
        ['step_loss']
    """
    return scalars(record["step"], _values(record))


def _values(record: Mapping[str, Any]) -> dict[str, float]:
    if record["kind"] == "step":
        return {STEP_LOSS: record["loss"]}
    if record["kind"] == "restart":
        return {"restarts": record["restarts"]}
    values = {k: v for k, v in record.items() if k not in ("kind", "epoch", "step", "worker")}
    if record["kind"] == "pace":
        return {f"{name}/worker{record['worker']}": value for name, value in values.items()}
    return values


def past_events(
    store: Store, names: Iterable[str], records: Sequence[Mapping[str, Any]], epoch_step: int
) -> list[Event]:
    """Events of all records, and the histograms up to the last whole epoch, each once.

    Args:
        store: Of the run.
        names: Of its event files, which may hold a step twice where a clean-up was interrupted half-way.
        records: Of `metrics.jsonl`, up to where the run goes on; the curves are made from them.
        epoch_step: Steps that were done at the end of the last whole epoch.
    """
    times: dict[tuple[str, int], float] = {}
    found: dict[tuple[str, int], Event] = {}
    for event in _events(store, names):
        for value in event.summary.value:
            key = (value.tag, event.step)
            times.setdefault(key, event.wall_time)
            if value.metadata.plugin_data.plugin_name == HISTOGRAMS and event.step <= epoch_step:
                summary = Summary(value=[value])
                found[key] = Event(step=event.step, wall_time=event.wall_time, summary=summary)
    events = list(found.values())
    for event in map(record_event, records):
        first = next((value.tag for value in event.summary.value), "")
        event.wall_time = times.get((first, event.step), event.wall_time)
        events.append(event)
    return sorted(events, key=lambda event: int(event.step))


def _events(store: Store, names: Iterable[str]) -> Iterator[Event]:
    with tempfile.TemporaryDirectory(prefix="qflock-curves-") as folder:
        for name in names:
            file = Path(folder) / Path(name).name
            file.write_bytes(store.read(name))
            yield from read_events(file)
            file.unlink()
