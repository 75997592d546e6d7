from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.training.commands import LINEAR, losses, qflock, records


def _train(run: Path, workers: int, what: str, *more: object) -> None:
    done = qflock("train", what, "--workers", workers, "--epochs", 3, "--restarts", 0, "--run", run, *more)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["experiment", "clipped"])
def test_losses_do_not_depend_on_the_number_of_workers(tmp_path: Path, name: str) -> None:
    # 5 examples in a step and 2 in the last one: of three workers, one is without any.
    for workers in (1, 2, 3):
        _train(tmp_path / str(workers), workers, f"{LINEAR}:{name}", "--batch-size", 5)
    one = losses(tmp_path / "1")
    assert len(one) == 3 * 23
    for workers in (2, 3):
        np.testing.assert_allclose(losses(tmp_path / str(workers)), one, atol=1e-5)
        for mine, theirs in zip(
            records(tmp_path / "1", "epoch"), records(tmp_path / str(workers), "epoch"), strict=True
        ):
            assert mine["val_loss"] == pytest.approx(theirs["val_loss"], abs=1e-5)
            assert mine["sign_accuracy"] == pytest.approx(theirs["sign_accuracy"], abs=1e-5)


def test_qcnn_on_one_and_two_workers_and_inference(tmp_path: Path) -> None:
    for workers in (1, 2):
        _train(tmp_path / str(workers), workers, "qcnn", "--qubits", 5)
    np.testing.assert_allclose(losses(tmp_path / "2"), losses(tmp_path / "1"), atol=1e-5)
    inferred = qflock("infer", tmp_path / "2")
    assert inferred.returncode == 0, inferred.stderr
    error = float(inferred.stdout.split("mean squared error ")[1].split()[0])
    assert error == pytest.approx(records(tmp_path / "2", "epoch")[-1]["val_loss"], abs=1e-6)
    assert len((tmp_path / "2" / "predictions.csv").read_text().splitlines()) == 1 + 48


def test_callbacks_get_the_usual_logs_and_may_stop(tmp_path: Path) -> None:
    _train(tmp_path / "run", 2, f"{LINEAR}:stopping")
    assert len(records(tmp_path / "run", "epoch")) == 2
