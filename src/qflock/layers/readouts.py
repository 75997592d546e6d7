"""The readouts of quantum layers as counts over fixed bins, which add up over batches and over workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from qflock.engine.simulator import Simulator

BINS = 50


class Readouts:
    """Counts of the values that one simulator gives while it is watched, and the first data circuit that came by.

    Args:
        bound: Values lie between `-bound` and `bound`.
    """

    def __init__(self, bound: float) -> None:
        self.edges: NDArray[np.float64] = np.linspace(-bound, bound, BINS + 1)
        self.counts: NDArray[np.int64] = np.zeros(BINS, dtype=np.int64)
        self.watching = False
        self.example: bytes | None = None

    def start(self) -> None:
        """Begins anew."""
        self.counts = np.zeros(BINS, dtype=np.int64)
        self.watching = True

    def stop(self) -> None:
        """Counts no more; what was counted stays."""
        self.watching = False

    def add(self, values: NDArray[Any]) -> None:
        """Counts values of any shape."""
        # Rounding may carry a value of single precision just beyond the bound.
        place = ((values.ravel() - self.edges[0]) * (BINS / (self.edges[-1] - self.edges[0]))).astype(
            np.int64
        )
        self.counts += np.bincount(place.clip(0, BINS - 1), minlength=BINS)


_watched: WeakKeyDictionary[Simulator, Readouts] = WeakKeyDictionary()


def readouts_of(simulator: Simulator) -> Readouts:
    """The counts of a simulator, which are begun by `start`."""
    found = _watched.get(simulator)
    if found is None:
        found = _watched[simulator] = Readouts(float(simulator.bounds.max()) or 1.0)
    return found


def note(simulator: Simulator, circuits: Sequence[bytes], values: NDArray[Any]) -> None:
    """Told by the layers what a simulator gave for some data circuits."""
    found = _watched.get(simulator)
    if found is not None and found.watching:
        found.add(values)
        if found.example is None and len(circuits):
            found.example = circuits[0]


def quantum_layers(model: Any) -> Iterator[Any]:
    """The layers of a model, and of models inside of it, that have a `simulator`."""
    for layer in getattr(model, "layers", ()):
        if isinstance(getattr(layer, "simulator", None), Simulator):
            yield layer
        yield from quantum_layers(layer)
