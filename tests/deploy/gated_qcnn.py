"""A small QCNN whose training waits, after its third epoch, for a file that the test makes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import keras

from qflock.training.ready import qcnn_experiment

GATE = "GATE"
HELD_AFTER_EPOCHS = 3


class Gate(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        while epoch + 1 == HELD_AFTER_EPOCHS and not Path(os.environ[GATE]).exists():
            time.sleep(0.1)


experiment = replace(qcnn_experiment("hybrid", qubits=4, examples=20), callbacks=lambda: [Gate()])
