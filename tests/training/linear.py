"""A small experiment without circuits, run by real workers in the tests."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import keras
import numpy as np

from qflock.training.data import Data, examples
from qflock.training.experiment import Experiment, sign_accuracy


class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        time.sleep(float(os.environ.get("SLOW_STEP", "0")))


class Tell(keras.callbacks.Callback):
    """Appends when and by which process each step was done."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        if file := os.environ.get("STEPS_FILE"):
            with open(file, "a") as steps:
                steps.write(f"{time.time()} {os.getpid()}\n")


class FailAt(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if os.environ.get("FAIL_EPOCH") == str(epoch):
            raise ZeroDivisionError("made to fail")


class StopAtTwo(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        assert logs is not None and {"loss", "sign_accuracy", "val_loss", "val_sign_accuracy"} == set(logs)
        self.model.stop_training = epoch == 1


class StopAt(keras.callbacks.Callback):
    """Asks this process to stop after a step."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        if os.environ.get("STOP_AT") == str(np.array(self.model.optimizer.iterations)):
            os.kill(os.getpid(), signal.SIGTERM)


class LowerRate(keras.callbacks.Callback):
    """Lowers the rate at the beginning of each epoch by a share of what it is: called twice, it shows."""

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self.model.optimizer.learning_rate.assign(self.model.optimizer.learning_rate * 0.99)


def remembering_callbacks() -> list[keras.callbacks.Callback]:
    return [
        keras.callbacks.EarlyStopping("val_loss", patience=3, min_delta=0.003, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=0.003),
        LowerRate(),
        StopAt(),
    ]


def model() -> keras.Model:
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)]
    )


def data(seed: int) -> Data:
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(160, 4)).astype(np.float32)
    labels = np.sign(inputs[:, :1] * inputs[:, 1:2])
    return Data(
        examples(inputs[:112], labels[:112], class_weights={-1: 1.5}), examples(inputs[112:], labels[112:])
    )


def make(optimizer: Any = keras.optimizers.Adam, callbacks: Any = tuple) -> Experiment:
    return Experiment(model, data, optimizer, metrics=(sign_accuracy,), callbacks=callbacks, name="linear")


experiment = make(callbacks=lambda: [Slow(), Tell(), FailAt()])
clipped = make(optimizer=lambda rate: keras.optimizers.SGD(rate, global_clipnorm=0.05))
stopping = make(callbacks=lambda: [StopAtTwo()])
remembering = make(callbacks=remembering_callbacks)
