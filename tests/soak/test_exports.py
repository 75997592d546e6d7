"""Keras callbacks of other packages get what `qflock train` logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from qflock.training.loop import Worker, train
from qflock.training.progress import Display
from qflock.training.ready import qcnn_experiment
from qflock.training.run import claim
from qflock.training.spec import RunSpec
from qflock.training.store import Store


@pytest.mark.soak
def test_mlflow_stores_the_metrics_of_each_epoch(tmp_path: Path) -> None:
    import mlflow
    from mlflow.keras import MlflowCallback

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = mlflow.create_experiment("qflock", artifact_location=(tmp_path / "artifacts").as_uri())
    spec = RunSpec("qcnn", {"architecture": "hybrid", "qubits": 4, "examples": 16}, 3, 8)
    store = Store(str(tmp_path / "run"))
    claim(store, spec, join=False)
    with mlflow.start_run(experiment_id=experiment) as started:

        def callbacks() -> list[Any]:
            return [MlflowCallback(started)]

        exported = replace(qcnn_experiment("hybrid", 4, 16), callbacks=callbacks)
        train(exported, spec, store, Worker(0, 1, tf.distribute.get_strategy()), Display.quiet)
    records = [json.loads(line) for line in store.read("metrics.jsonl").splitlines()]
    losses = [r["val_loss"] for r in records if r["kind"] == "epoch"]
    stored = mlflow.MlflowClient().get_metric_history(started.info.run_id, "val_loss")
    np.testing.assert_allclose([m.value for m in sorted(stored, key=lambda m: m.step)], losses)
