from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qflock.errors import StoreError
from qflock.training import curves
from qflock.training.curves import Curves
from qflock.training.store import Store
from tests.training.commands import check_curves


@pytest.fixture(autouse=True)
def _local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


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
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _wait(what: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_copied_while_the_training_goes_on(tmp_path: Path) -> None:
    run, records = tmp_path / "run", [_record(step) for step in range(1, 11)]
    written = Curves(Store(str(run)), [], sync_seconds=0.05)
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


def test_a_resumed_run_has_each_step_once(tmp_path: Path, _local: Path) -> None:
    run, store = tmp_path / "run", Store(str(tmp_path / "run"))
    first = Curves(store, [], sync_seconds=0.05)
    for step in range(1, 9):  # of which the checkpoint holds six
        first.add(_record(step))
    _wait(lambda: list(run.glob("tensorboard/*")))
    first.discard()
    first._thread.join()  # a killed process copies nothing any more
    records = [_record(step) for step in range(1, 13)]
    second = Curves(store, records[:6])
    for record in records[6:]:
        second.add(record)
    second.close()
    _keep(run, records)
    check_curves(run)
    assert not list(_local.iterdir())


def test_a_long_run_is_copied_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "FULL_BYTES", 300)
    run, records = tmp_path / "run", [_record(step) for step in range(1, 41)]
    written = Curves(Store(str(run)), [], sync_seconds=0.02)
    for record in records:
        written.add(record)
        time.sleep(0.01)
    written.close()
    _keep(run, records)
    check_curves(run)
    assert len(list(run.glob("tensorboard/*"))) > 2


def test_a_store_that_refuses_ends_the_training(tmp_path: Path, _local: Path) -> None:
    run = tmp_path / "run"
    written = Curves(Store(str(run)), [], sync_seconds=0.05)
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
    assert not list(_local.iterdir())


def test_a_full_local_disk_ends_the_training(tmp_path: Path, _local: Path) -> None:
    written = Curves(Store(str(tmp_path / "run")), [])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreError, match=r"Cannot write TensorBoard's files below .*set TMPDIR"):
            for step in range(1, 10_000):
                written.add(_record(step))
        written.discard()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(_local.iterdir())
