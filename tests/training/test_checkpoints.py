from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qflock.errors import ConfigurationError, RunError
from qflock.training import checkpoints
from qflock.training.batches import Batches, worker_slice
from qflock.training.data import examples, pack, unpack
from qflock.training.state import Position, TrainingState
from qflock.training.store import Store

PRINT = "ab" * 32


def _state(step: int) -> TrainingState:
    return TrainingState(Position(step, 0, PRINT), (np.full(3, float(step)), np.array(step)))


class _Interrupted(Exception):
    pass


class _Breaking(Store):
    """Stops before the n-th change, as a kill would."""

    def __init__(self, url: str, changes: int) -> None:
        super().__init__(url)
        self._left = changes

    def write(self, name: str, content: bytes) -> None:
        self._count()
        super().write(name, content)

    def delete(self, name: str) -> None:
        self._count()
        super().delete(name)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Interrupted


@pytest.mark.parametrize("changes", range(5))
def test_interrupted_anywhere_the_newest_checkpoint_is_whole(tmp_path: Path, changes: int) -> None:
    store = Store(str(tmp_path))
    for step in (1, 2):
        checkpoints.save(store, _state(step), keep=2)
    try:
        checkpoints.save(_Breaking(str(tmp_path), changes), _state(3), keep=2)
    except _Interrupted:
        assert changes < 4
    found = checkpoints.newest(store, PRINT)
    assert found is not None and found.position.step == (2 if changes < 2 else 3)
    checkpoints.save(store, _state(4), keep=2)
    assert len(store.list(checkpoints.CHECKPOINTS)) == 4


def test_damaged_and_foreign_ones_are_passed_over_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(str(tmp_path))
    for step in (1, 2):
        checkpoints.save(store, _state(step), keep=5)
    store.write(f"{checkpoints.CHECKPOINTS}/step-000000000002-000000.npz", b"damaged")
    found = checkpoints.newest(store, PRINT)
    assert found is not None and found.position.step == 1
    assert "step-000000000002-000000" in caplog.text
    assert checkpoints.newest(store, "cd" * 32) is None


def test_names_cannot_leave_the_run() -> None:
    with pytest.raises(RunError, match="must stay inside"):
        Store("memory://bucket/run").write("../other/file", b"")
    with pytest.raises(ConfigurationError, match="must be a folder or start with one of"):
        Store("ftp://host/run")


def test_each_example_once_per_epoch_for_any_number_of_workers() -> None:
    batches = Batches(examples=23, batch_size=5, seed=1)
    for workers in (1, 2, 7):
        steps = [batches.indices(5 + place) for place in range(batches.steps_per_epoch)]
        parts = [worker_slice(step, worker, workers) for step in steps for worker in range(workers)]
        assert sorted(np.concatenate(parts).tolist()) == list(range(23))
        assert np.array_equal(np.concatenate(parts), np.concatenate(steps))


def test_stored_circuits_come_back_byte_for_byte() -> None:
    inputs = np.array([b"\x00ends with zeros\x00\x00", b"x"], dtype=object)
    stored = unpack(pack(examples(inputs, [1, -1], sample_weights=[0.5, 2])), "here")
    assert stored.inputs.tolist() == inputs.tolist()
    assert stored.weights.tolist() == [0.5, 2.0]
