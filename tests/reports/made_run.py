"""A run as `qflock train` leaves it, without training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qflock.training.environment import record_environment
from qflock.training.run import PREDICTIONS, SPEC, write_status
from qflock.training.spec import RunSpec
from qflock.training.store import Store

QCNN = {"architecture": "hybrid", "qubits": 4, "examples": 20}


def make_run(
    url: object,
    epochs: int = 3,
    extra: dict[str, Any] | None = None,
    what: str = "qcnn",
    paces: Sequence[dict[str, float]] = (),
) -> Store:
    """A finished run of two steps per epoch, with predictions; `extra` is measured at each epoch too, and each worker's pace."""
    store = Store(str(url))
    spec = RunSpec(what, dict(QCNN) if what == "qcnn" else {}, epochs=epochs, batch_size=7)
    store.write(SPEC, spec.to_json().encode())
    record_environment(store, workers=2)
    lines = []
    for epoch in range(1, epochs + 1):
        for step in (2 * epoch - 1, 2 * epoch):
            lines.append({"kind": "step", "step": step, "epoch": epoch, "loss": math.exp(-step)})
        values = {
            "loss": math.exp(-epoch),
            "val_loss": 0.1 + math.exp(-epoch),
            "seconds": 0.5,
            **(extra or {}),
        }
        place = {"epoch": epoch, "step": 2 * epoch}
        lines.append({"kind": "epoch", **place, **values})
        lines += [{"kind": "pace", **place, "worker": worker, **pace} for worker, pace in enumerate(paces)]
        lines.append({"kind": "restart", **place, "workers": 2, "restarts": epoch})
    store.write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
    store.write(PREDICTIONS, b"example,output,prediction,label\n0,0,0.9,1\n1,0,-0.5,-1\n2,0,0.25,-1\n")
    write_status(store, "finished", 2 * epochs, math.exp(-epochs))
    return store


def write_readouts(run: Path, epochs: int = 3) -> None:
    """TensorBoard histograms of two readouts, as they come from a training."""
    import tensorflow as tf

    writer = tf.summary.create_file_writer(str(run / "tensorboard"))
    with writer.as_default():
        for epoch in range(1, epochs + 1):
            for index in range(2):
                values = tf.linspace(-1.0 / epoch, 1.0 / epoch, 101)
                tf.summary.histogram(f"readouts/filter0/{index}", values, step=2 * epoch)
    writer.close()
