"""A process that goes on from the newest checkpoint and says which ones it has stored: URL, COUNT, OPERATION to die at (0: none)."""

from __future__ import annotations

import sys

import numpy as np

from qflock.training import checkpoints
from qflock.training.state import Position, TrainingState
from qflock.training.store import Store
from tests.training.killing import kill_at

PRINT = "ab" * 32
KEEP = 2


def state_of(step: int) -> TrainingState:
    """A state whose content follows from its step."""
    numbers = np.random.default_rng(step)
    return TrainingState(Position(step, 0, PRINT), (numbers.normal(size=500), numbers.integers(9, size=3)))


def main(url: str, count: int, operation: int) -> None:
    store = Store(url)
    found = checkpoints.newest(store, PRINT)
    step = found.position.step if found else 0
    print(f"found {step}", flush=True)
    if operation:
        kill_at(operation, "/checkpoints")
    for _ in range(count):
        step += 1
        checkpoints.save(store, state_of(step), KEEP)
        print(f"stored {step}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
