from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from qflock.errors import RunError
from qflock.training.data import examples
from qflock.training.state import Position, TrainingState, capture, restore, training_fingerprint
from qflock.training.steps import Steps
from tests.training import linear


def _print(optimizer: Any = keras.optimizers.Adam, loss: Any = "mean_squared_error") -> str:
    return training_fingerprint(_steps(optimizer, loss), "data", batch_size=4, seed=0)


def _steps(optimizer: Any = keras.optimizers.Adam, loss: Any = "mean_squared_error") -> Steps:
    keras.backend.clear_session()
    experiment = linear.Experiment(linear.model, linear.data, optimizer, loss)
    sample = examples(np.zeros((2, 4), dtype=np.float32), [1, -1])
    return Steps(experiment, tf.distribute.get_strategy(), sample, 0.1)


def _absolute(labels: Any, outputs: Any) -> Any:
    return keras.ops.mean(keras.ops.abs(labels - outputs), axis=-1)


class _Own(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step: Any) -> float:
        return 0.1


def test_optimiser_and_loss_are_part_of_a_training() -> None:
    schedule = keras.optimizers.schedules.CosineDecay
    prints = [
        _print(),
        _print(lambda rate: keras.optimizers.Adam(rate, beta_1=0.8)),
        _print(lambda rate: keras.optimizers.Adam(2 * rate)),
        _print(lambda rate: keras.optimizers.Adam(rate, clipnorm=1.0)),
        _print(lambda rate: keras.optimizers.Adam(schedule(rate, 10))),
        _print(lambda rate: keras.optimizers.Adam(schedule(rate, 20))),
        _print(lambda rate: keras.optimizers.Adam(_Own())),
        _print(keras.optimizers.SGD),
        _print(loss="mean_absolute_error"),
        _print(loss=keras.losses.Poisson()),
        _print(loss=_absolute),
    ]
    assert len(set(prints)) == len(prints)
    assert (_print(), _print(loss=_absolute)) == (prints[0], prints[-1])


def test_weights_of_another_shape_or_type_are_refused() -> None:
    steps = _steps()
    state = capture(steps, Position(3, 0, "ab" * 32))
    assert restore(steps, state, chief=True) == state.position
    for wrong in (
        np.zeros((4, 9), dtype=np.float32),
        state.arrays[0].astype("float64"),
        state.arrays[0].astype("U4"),
    ):
        with pytest.raises(RunError, match="The stored weights must fit the model"):
            restore(steps, TrainingState(state.position, (wrong, *state.arrays[1:])), chief=True)
