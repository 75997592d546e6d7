"""Which examples make which step: a pure function of seed and step, whatever the number of workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True)
class Batches:
    """The order of the examples over all epochs."""

    examples: int
    batch_size: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch; the last one may be smaller."""
        return -(-self.examples // self.batch_size)

    def indices(self, step: int) -> np.ndarray:
        """The examples of global step `step` (from 0), over all workers."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = _permutation(self.seed, epoch, self.examples)
        return order[place * self.batch_size : (place + 1) * self.batch_size]


@lru_cache(maxsize=2)
def _permutation(seed: int, epoch: int, examples: int) -> np.ndarray:
    order = np.random.default_rng([seed, epoch]).permutation(examples)
    order.setflags(write=False)
    return order


def worker_slice(indices: np.ndarray, worker: int, workers: int) -> np.ndarray:
    """The contiguous part of `indices` that one worker handles; parts differ in length by at most one, and may be empty.

    Example:
        >>> [worker_slice(np.arange(4), w, 3).tolist() for w in range(3)]
        [[0], [1], [2, 3]]
    """
    return indices[len(indices) * worker // workers : len(indices) * (worker + 1) // workers]
