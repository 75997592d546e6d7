"""Event files after workers were killed: each step once, with the values of the log."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

from tests.training.commands import LINEAR, start

EPOCHS = 40


@pytest.mark.soak
@pytest.mark.parametrize("victim", [0, 1])
def test_each_step_is_there_once_after_a_kill(tmp_path: Path, victim: int) -> None:
    run = tmp_path / "run"
    what = (f"{LINEAR}:experiment", "--epochs", EPOCHS, "--checkpoint-seconds", 0.3, "--workers", 2)
    process = start("train", *what, "--run", run, SLOW_STEP="0.03")
    end = time.monotonic() + 300
    while len(list((run / "checkpoints").glob("*.json"))) < 2:
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.05)
    sorted(psutil.Process(process.pid).children(), key=lambda p: p.pid)[victim].kill()
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    found = EventAccumulator(str(run / "tensorboard"), size_guidance={"tensors": 0})
    found.Reload()
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for tag, kind, key in (("step_loss", "step", "loss"), ("val_loss", "epoch", "val_loss")):
        written = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in found.Tensors(tag)]
        assert sorted(written) == [(r["step"], np.float32(r[key])) for r in records if r["kind"] == kind]
    steps = [e.step for e in found.Tensors("weights/sequential/dense/kernel")]
    assert sorted(steps) == [r["step"] for r in records if r["kind"] == "epoch"]
    assert [tensor_util.make_ndarray(e.tensor_proto).item() for e in found.Tensors("restarts")] == [1.0]
