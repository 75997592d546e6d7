"""An experiment whose weights tell how often, and with what weight, each example was used. Run by real workers."""

from __future__ import annotations

import os
from typing import Any

import keras

from qflock.training.data import Data
from qflock.training.experiment import Experiment
from qflock.training.files import file_examples

EXAMPLES = 17


def model() -> keras.Model:
    """One-hot examples: the gradient of the i-th weight is the weight of the i-th example by the size of its batch."""
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    return keras.Sequential([keras.Input((EXAMPLES,)), dense])


def data(seed: int) -> Data:
    source = file_examples(os.environ["VISITS_FILE"], class_weights={-1: 2.0})
    return Data(source, source)


def output(labels: Any, outputs: Any) -> Any:
    return outputs[:, 0]


experiment = Experiment(model, data, lambda rate: keras.optimizers.SGD(rate), loss=output, name="visits")
