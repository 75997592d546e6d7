"""Predictions of a finished or interrupted run on the validation examples that were stored with it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from qflock.errors import RunError
from qflock.training import checkpoints
from qflock.training.data import unpack
from qflock.training.experiment import Experiment
from qflock.training.run import PREDICTIONS, VALIDATION
from qflock.training.spec import RunSpec
from qflock.training.state import restore
from qflock.training.steps import Steps
from qflock.training.store import Store


@dataclass(frozen=True)
class Predictions:
    """Outputs and labels, and how far apart they are.

    Args:
        outputs: `(examples, outputs)`.
        labels: The same shape.
        mean_squared_error: Over all values.
        accuracy: Share of outputs with the sign of their label.
    """

    outputs: np.ndarray
    labels: np.ndarray
    mean_squared_error: float
    accuracy: float


def infer(experiment: Experiment, spec: RunSpec, store: Store) -> Predictions:
    """Rebuilds the model, loads the newest weights, predicts, and writes `predictions.csv` into the run.

    Raises:
        RunError: If the run has no weights yet, or they do not fit the model.
    """
    examples = unpack(store.read(VALIDATION), f"{store.url}/{VALIDATION}")
    steps = Steps(experiment, tf.distribute.get_strategy(), examples, spec.learning_rate)
    if restore(steps, checkpoints.newest(store), chief=True) is None:
        raise RunError(f"{store.url} must hold stored weights, but has no readable checkpoint yet")
    outputs = steps.predict(examples.inputs)
    if outputs.shape != examples.labels.shape:
        raise RunError(
            f"The model's outputs {outputs.shape} must have the shape of the labels {examples.labels.shape}"
        )
    error = np.mean((outputs.astype(np.float64) - examples.labels) ** 2)
    accuracy = np.mean(outputs * examples.labels > 0)
    predictions = Predictions(outputs, examples.labels, float(error), float(accuracy))
    store.write(PREDICTIONS, _as_csv(predictions).encode())
    return predictions


def _as_csv(predictions: Predictions) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["example", "output", "prediction", "label"])
    for (example, output), prediction in np.ndenumerate(predictions.outputs):
        writer.writerow([example, output, float(prediction), float(predictions.labels[example, output])])
    return text.getvalue()
