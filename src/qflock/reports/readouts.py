"""Distributions of the quantum readouts, from the histograms of a run's TensorBoard files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qflock.training.store import Store

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Readout:
    """One histogram over the epochs.

    Args:
        name: Its tag.
        steps: `(epochs,)`.
        quantiles: `(epochs, 5)`: what `QUANTILES` says.
    """

    name: str
    steps: np.ndarray
    quantiles: np.ndarray


def read_readouts(store: Store) -> list[Readout]:
    """All histograms whose tag names readouts; none where none were recorded."""
    from qflock.training.curves import FOLDER

    files = [name for name in store.list(FOLDER) if ".tfevents." in name]
    if not files:
        return []
    with tempfile.TemporaryDirectory(prefix="qflock-report-") as folder:
        for name in files:
            (Path(folder) / name).write_bytes(store.read(f"{FOLDER}/{name}"))
        return list(_readouts(folder))


def _readouts(folder: str) -> Iterator[Readout]:
    from tensorboard.backend.event_processing.event_accumulator import TENSORS, EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events: Any = EventAccumulator(folder, size_guidance={TENSORS: 0})
    events.Reload()
    for tag in events.Tags()[TENSORS]:
        plugin = events.SummaryMetadata(tag).plugin_data.plugin_name
        if plugin != "histograms" or "readout" not in tag.lower():
            continue
        found = {event.step: make_ndarray(event.tensor_proto) for event in events.Tensors(tag)}
        filled = {
            step: table for step, table in sorted(found.items()) if table.size and table[:, 2].sum() > 0
        }
        if filled:
            quantiles = np.array([quantiles_of(table) for table in filled.values()])
            yield Readout(tag, np.array(list(filled)), quantiles)


def quantiles_of(buckets: np.ndarray) -> np.ndarray:
    """Quantiles of a histogram, values spread evenly within each bucket.

    Args:
        buckets: `(buckets, 3)`: left edge, right edge, count.

    Example:
        >>> quantiles_of(np.array([[0.0, 1.0, 10.0], [1.0, 2.0, 10.0]])).tolist()
        [0.1, 0.5, 1.0, 1.5, 1.9]
    """
    share = np.concatenate([[0.0], np.cumsum(buckets[:, 2])]) / buckets[:, 2].sum()
    edges = np.concatenate([buckets[:1, 0], buckets[:, 1]])
    return np.asarray(np.interp(QUANTILES, share, edges))
