"""`qflock.TensorBoard`: what `qflock train` writes for TensorBoard, for those who call `model.fit`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from qflock.engine.watch import watch
from qflock.layers.readouts import quantum_layers, readouts_of
from qflock.training.board import described, distributions, drawn, example_circuit, learning_rate, norm
from qflock.training.events import EventWriter, Histogram, histograms, scalars
from qflock.training.gradient_tap import GradientTap
from qflock.training.pace import Pace


class TensorBoard(keras.callbacks.Callback):
    """Writes curves, distributions, the model's graph and its circuits for TensorBoard while `model.fit` runs.

    Once: the graph, a picture of each quantum layer's circuit and of one data circuit, hyper-parameters. For each step:
    the mean loss of its epoch so far. For each epoch, at its last step: what Keras logs, learning rate, norm of the
    gradient, time of a step, examples and circuits per second, and histograms of weights, gradients and readouts (of
    the validation examples, or without any, of all examples of the epoch).

    Args:
        log_dir: Folder for the event files; is made if there is none. Each training should have one of its own.
        hyperparameters: Shown as a table beside those of the optimiser; anything with a text form.

    Example:
        >>> import tempfile, keras, numpy as np, qflock
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile(loss="mse")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     board = qflock.TensorBoard(folder)
        ...     _ = model.fit(np.zeros((4, 2)), np.zeros((4, 1)), callbacks=[board], verbose=0)
    """

    def __init__(self, log_dir: str | Path, hyperparameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._folder = Path(log_dir)
        self._more = dict(hyperparameters or {})
        self._step, self._begun = 0, 0.0
        self._pace: Pace | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the files and describes the model."""
        self._writer = EventWriter(self._folder)
        self._gradients = GradientTap(self.model)
        layers = list(quantum_layers(self.model))
        self._readouts = {layer.name: readouts_of(layer.simulator) for layer in layers}
        self._described = False
        self._writer.put(described(self.model, self._hyperparameters()))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts the clock."""
        self._first, self._pace = self._step, None
        self._begun, self._work = time.perf_counter(), watch.work()
        self._count_readouts()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes the loss, which Keras gives as the mean of the epoch so far."""
        self._step += 1
        if logs and "loss" in logs:
            step, loss = self._step, float(logs["loss"])
            self._writer.put(lambda: [scalars(step, {"running_loss": loss})])

    def on_test_begin(self, logs: Any = None) -> None:
        """Training has ended for this epoch; validation takes its place in the readouts."""
        if self._begun:
            self._pace = self._pace or self._measure()
            self._count_readouts()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes what the epoch gave."""
        pace = self._pace or self._measure()
        self._draw_example()
        step, gradients = self._step, self._gradients.read()
        extra = {"learning_rate": learning_rate(self.model.optimizer), "gradient_norm": norm(gradients)}
        values = {name: float(value) for name, value in (logs or {}).items()} | extra | self._rates(pace)
        weights = {v.path: np.array(v.numpy()) for v in self.model.trainable_variables}
        seen = {name: Histogram(each.edges, each.counts) for name, each in self._readouts.items()}
        self._writer.put(lambda: [scalars(step, values)])
        self._writer.put(lambda: [histograms(step, distributions(weights, gradients, seen))])

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the files."""
        self._begun = 0.0
        for each in self._readouts.values():
            each.stop()
        self._gradients.close()
        self._writer.close()

    def _measure(self) -> Pace:
        work = watch.work().since(self._work)
        # Keras does not tell how large a batch is, but each example passes each quantum layer once.
        examples = work.circuits / max(1, len(self._readouts))
        seconds, steps = time.perf_counter() - self._begun, self._step - self._first
        return Pace(steps, examples, work.circuits, seconds, quantum=work.seconds)

    def _rates(self, pace: Pace) -> dict[str, float]:
        rates = pace.rates()
        shown = ["step_seconds/total"]
        if self._readouts:
            shown += ["step_seconds/quantum", "examples_per_second", "circuits_per_second"]
        return {f"{name}/worker0": rates[name] for name in shown}

    def _count_readouts(self) -> None:
        for each in self._readouts.values():
            each.start()

    def _draw_example(self) -> None:
        """The first data circuit that came by, once."""
        example = next((each.example for each in self._readouts.values() if each.example), None)
        circuit = None if self._described else example_circuit(example)
        if circuit is not None:
            self._described = True
            self._writer.put(lambda: drawn("example", circuit))

    def _hyperparameters(self) -> dict[str, Any]:
        optimizer = self.model.optimizer.get_config()
        known = {"optimizer": optimizer.pop("name"), "loss": self.model.loss, **self.params}
        return {
            name: value for name, value in {**known, **optimizer, **self._more}.items() if value is not None
        }
