from __future__ import annotations

import json
import resource
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from qflock.errors import StoreError
from qflock.training.metrics_log import NAME, MetricsLog, read_metrics
from qflock.training.state import Position
from qflock.training.store import Store

PRINT = "0" * 64


pytestmark = pytest.mark.usefixtures("local")


def _steps(records: list[dict[str, Any]]) -> list[int]:
    return [record["step"] for record in records if record["kind"] == "step"]


def test_nothing_is_stored_before_it_is_flushed_and_nothing_twice(tmp_path: Path, local: Path) -> None:
    store = Store(str(tmp_path / "run"))
    log = MetricsLog(store, None)
    returned = [
        log.step(1, 1, 0.5),
        log.epoch(1, 1, {"loss": 0.5}),
        log.pace(1, 1, 0, {"steps_per_second": 9.0}),
    ]
    assert read_metrics(store) == [] and log.records() == returned
    log.flush()
    assert read_metrics(store) == returned
    store.write(NAME, b"")
    log.flush()  # nothing is new
    assert read_metrics(store) == []
    log.step(2, 2, 0.25)
    log.flush()
    assert _steps(read_metrics(store)) == [1, 2]
    log.close()
    assert not list(local.iterdir())


def test_a_run_goes_on_after_the_checkpoint(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "run"))
    log = MetricsLog(store, None)
    for step in range(1, 7):
        log.step(step, 1 + (step - 1) // 3, 1 / step)
        if step % 3 == 0:
            log.epoch(step // 3, step, {"loss": 1 / step})
    log.flush()
    again = MetricsLog(store, Position(4, 1, PRINT))
    assert [(record["kind"], record["step"]) for record in again.records()] == [
        ("step", 1), ("step", 2), ("step", 3), ("epoch", 3), ("step", 4),
    ]  # fmt: skip


def test_missing_steps_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(str(tmp_path / "run"))
    log = MetricsLog(store, None)
    for step in (1, 2, 4):
        log.step(step, 1, 1.0)
    log.flush()
    MetricsLog(store, Position(2, 0, PRINT))
    assert not caplog.messages
    MetricsLog(store, Position(4, 0, PRINT))
    assert caplog.messages == [f"{store.url}/metrics.jsonl has 3 of 4 steps only"]


def test_restarts_are_counted_though_each_step_shows_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "run"))
    first = MetricsLog(store, None)
    for step in range(1, 9):
        first.step(step, 1, 1 / step)
    first.flush()
    for step in (7, 7, 5, 6):
        log = MetricsLog(store, Position(step, 0, PRINT))
        log.restart(step, 0, 1)
        for later in range(step + 1, 9):
            log.step(later, 1, 1 / later)
        log.flush()
    found = [(r["step"], r["restarts"]) for r in read_metrics(store) if r["kind"] == "restart"]
    assert found == [(5, 3), (6, 4)]
    assert _steps(read_metrics(store)) == list(range(1, 9))


def test_a_full_local_disk_ends_with_one_line(tmp_path: Path) -> None:
    log = MetricsLog(Store(str(tmp_path / "run")), None)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreError, match=r"^Cannot write metrics\.jsonl in TMPDIR: the file is larger"):
            for step in range(1, 10_000):
                log.step(step, 1, 1.0)
        log.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_records_stay_out_of_memory(tmp_path: Path) -> None:
    log = MetricsLog(Store(str(tmp_path / "run")), None)
    log.step(0, 1, 1.0)
    log.flush()
    tracemalloc.start()
    try:
        for step in range(1, 50_001):
            log.step(step, 1, 1.0)
        log.flush()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = (tmp_path / "run" / NAME).stat().st_size
    assert size > 2_500_000 and kept < 100_000 and peak < size / 4
    last = (tmp_path / "run" / NAME).read_text().splitlines()[-1]
    assert json.loads(last)["step"] == 50_000
