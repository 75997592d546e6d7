from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qflock.errors import StoreError
from qflock.training import events
from qflock.training.curves import Curves
from qflock.training.events import Histogram
from qflock.training.metrics_log import MetricsLog
from qflock.training.state import Position
from qflock.training.store import Store
from tests.training.commands import check_curves, records

pytestmark = pytest.mark.usefixtures("local")


def _record(step: int) -> dict[str, Any]:
    if step % 5:
        return {"kind": "step", "step": step, "epoch": 1 + step // 5, "loss": 1 / step}
    return {
        "kind": "epoch",
        "epoch": step // 5,
        "step": step,
        "loss": 1 / step,
        "val_loss": 2 / step,
        "seconds": 0.5,
    }


def _keep(run: Path, records: list[dict[str, Any]]) -> None:
    run.mkdir(exist_ok=True)
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _wait(what: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_copied_while_the_training_goes_on(tmp_path: Path) -> None:
    run, records = tmp_path / "run", [_record(step) for step in range(1, 11)]
    written = Curves(Store(str(run)), [], 0, sync_seconds=0.05)
    sizes: set[int] = set()

    def grown() -> bool:
        size = sum(file.stat().st_size for file in run.glob("tensorboard/events*") if file.suffix != ".part")
        seen = size in sizes
        sizes.add(size)
        return not seen and size > 0

    for record in records:
        written.add(record)
        _wait(grown)
    _keep(run, records)
    check_curves(run)
    written.discard()


def test_a_resumed_run_has_each_step_once(tmp_path: Path, local: Path) -> None:
    run, store = tmp_path / "run", Store(str(tmp_path / "run"))
    first = Curves(store, [], 0, sync_seconds=0.05)
    for step in range(1, 9):  # of which the checkpoint holds six
        first.add(_record(step))
    _wait(lambda: list(run.glob("tensorboard/*")))
    first.discard()
    first._thread.join()  # a killed process copies nothing any more
    records = [_record(step) for step in range(1, 13)]
    second = Curves(store, records[:6], 5)
    for record in records[6:]:
        second.add(record)
    second.close()
    _keep(run, records)
    check_curves(run)
    assert not list(local.iterdir())


def test_a_run_that_is_taken_up_twice_at_the_same_step_counts_both(tmp_path: Path) -> None:
    run, store = tmp_path / "run", Store(str(tmp_path / "run"))
    _keep(run, [_record(step) for step in range(1, 9)])
    for step, epochs in ((7, 1), (7, 1), (5, 1)):
        log = MetricsLog(store, Position(step, epochs, "0" * 64))
        log.restart(step, epochs, 1)
        log.flush()
        Curves(store, log.records(), 5).close()
        check_curves(run)
    assert [(r["step"], r["restarts"]) for r in records(run, "restart")] == [(5, 3)]
    assert [r["step"] for r in records(run, "step")] == [1, 2, 3, 4]


def test_what_a_file_held_beyond_the_checkpoint_is_dropped_and_the_time_is_kept(tmp_path: Path) -> None:
    run, store = tmp_path / "run", Store(str(tmp_path / "run"))
    first = Curves(store, [], 0)
    for step in (5, 10):
        first.add(_record(step))
        first.distributions(step, lambda: {"readouts/a": Histogram.of(np.arange(3))})
    first.close()
    before = {(e.step, v.tag): e.wall_time for e in _events(run) for v in e.summary.value}
    time.sleep(0.05)
    Curves(store, [_record(5)], 5).close()
    after = {(e.step, v.tag): e.wall_time for e in _events(run) for v in e.summary.value}
    assert set(after) == {(5, tag) for tag in ("loss", "val_loss", "seconds", "readouts/a")}
    assert after == {key: before[key] for key in after}


def _events(run: Path) -> list[Any]:
    return [event for file in sorted(run.glob("tensorboard/events*")) for event in events.read_events(file)]


def test_a_long_run_is_copied_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SEGMENT_BYTES", 300)
    run, records = tmp_path / "run", [_record(step) for step in range(1, 41)]
    written = Curves(Store(str(run)), [], 0, sync_seconds=0.02)
    for record in records:
        written.add(record)
        time.sleep(0.01)
    written.close()
    _keep(run, records)
    check_curves(run)
    assert len(list(run.glob("tensorboard/*"))) > 2


def test_a_store_that_refuses_ends_the_training(tmp_path: Path, local: Path) -> None:
    run = tmp_path / "run"
    written = Curves(Store(str(run)), [], 0, sync_seconds=0.05)
    run.mkdir(exist_ok=True)
    written._thread.join(0.2)
    for file in run.glob("tensorboard/*"):
        file.unlink()
    if (run / "tensorboard").exists():
        (run / "tensorboard").rmdir()
    (run / "tensorboard").write_text("in the way")
    with pytest.raises(StoreError, match=r"Cannot write .*tensorboard"):
        for step in range(1, 1000):
            written.add(_record(step))
            time.sleep(0.01)
    written.discard()
    assert not list(local.iterdir())


def test_a_fulllocal_disk_ends_the_training(tmp_path: Path, local: Path) -> None:
    written = Curves(Store(str(tmp_path / "run")), [], 0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreError, match=r"Cannot write TensorBoard's files below .*made in TMPDIR"):
            for step in range(1, 10_000):
                written.add(_record(step))
            written.sync()
        written.discard()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(local.iterdir())
