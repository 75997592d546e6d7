"""The compiled training and validation steps, equal for any number of workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from qflock.errors import ConfigurationError
from qflock.training.data import Examples, Inputs
from qflock.training.experiment import Experiment
from qflock.training.pace import Clock
from qflock.training.summation import sum_over_workers


class Steps:
    """Model, optimiser and metrics of one worker, with the steps compiled over them.

    The gradients, the loss and the wishes to stop or to store are summed over the workers in every step; metrics only when they are
    read, because their state is additive.

    Args:
        experiment: What to train.
        strategy: A `tf.distribute.Strategy`; the default one for a single worker.
        sample: A few examples, for shapes and types.
        learning_rate: For the optimiser.
    """

    def __init__(self, experiment: Experiment, strategy: Any, sample: Examples, learning_rate: float) -> None:
        self.strategy = strategy
        self.workers = int(strategy.num_replicas_in_sync)
        with strategy.scope():
            self.model = experiment.model()
            self.optimizer = experiment.optimizer(learning_rate)
            self.optimizer.build(self.model.trainable_variables)
            self.model.compile(optimizer=self.optimizer)
        if self.workers > 1:
            _leave_gradients_alone(self.optimizer)
        self.loss = experiment.loss
        self._loss = _loss_function(experiment.loss)
        self.clock = Clock()
        self._gradients: list[Any] = []
        # Outside of the strategy's scope these are plain variables of each worker.
        self.train_metrics = [keras.metrics.Mean("loss"), *map(_metric, experiment.metrics)]
        self.validation_metrics = [keras.metrics.Mean("val_loss"), *map(_metric, experiment.metrics)]
        self._build_metrics(sample)
        signature = _signature(sample)
        self._train = tf.function(self._train_step, input_signature=signature)
        self._validate = tf.function(self._validation_step, input_signature=signature[:4])
        self._sum = tf.function(self._summed)

    def train(
        self, part: Examples, indices: np.ndarray, global_size: int, wish: float
    ) -> tuple[float, float]:
        """One step on this worker's `indices`; returns the loss over all workers, and the sum of all their wishes."""
        started = time.perf_counter()
        rows = self._rows(part, indices)
        prepared = time.perf_counter()
        result, self._gradients = self._train(*rows, np.float32(global_size), np.float32(wish))
        loss, wishes = result.numpy()
        self.clock.step(len(indices), started, prepared)
        return float(loss), float(wishes)

    def gradients(self) -> list[np.ndarray]:
        """This worker's share of the last step's gradients, one array for each trainable variable."""
        shapes = [tuple(v.shape) for v in self.model.trainable_variables]
        return [np.asarray(g) for g in self._gradients] or [np.zeros(shape, np.float32) for shape in shapes]

    def validate(self, part: Examples, indices: np.ndarray) -> None:
        """Adds this worker's `indices` to the validation metrics."""
        self._validate(*self._rows(part, indices))

    def predict(self, inputs: Inputs) -> np.ndarray:
        """Outputs of the model."""
        return np.asarray(self.model(_tensors(inputs), training=False))

    def reduced(self, metrics: Sequence[Any]) -> list[np.ndarray]:
        """The metrics' state summed over the workers."""
        return self.sum_over_workers([np.asarray(v) for m in metrics for v in m.variables])

    def sum_over_workers(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Sums arrays over the workers; every worker must call it with the same shapes."""
        if self.workers == 1:
            return list(arrays)
        # One float64 vector holds every float32 and every counter exactly, and travels in one reduction. The sum is compiled for
        # each length: few lengths, few compilations.
        flat = np.concatenate([np.ravel(array).astype(np.float64) for array in arrays])
        padded = np.zeros(max(_LEAST_VECTOR, 1 << (flat.size - 1).bit_length()))
        padded[: flat.size] = flat
        total = self._sum(tf.constant(padded)).numpy()[: flat.size]
        parts = np.split(total, np.cumsum([array.size for array in arrays])[:-1])
        return [part.reshape(a.shape).astype(a.dtype) for part, a in zip(parts, arrays, strict=True)]

    def metric_states(self) -> list[np.ndarray]:
        """The state of all metrics, as this worker has it."""
        return [np.asarray(v) for m in (*self.train_metrics, *self.validation_metrics) for v in m.variables]

    def take_metrics(self, states: Sequence[np.ndarray]) -> dict[str, float]:
        """Values of all metrics from their states summed over the workers; starts the metrics anew."""
        groups = ((self.train_metrics, ""), (self.validation_metrics, "val_"))
        variables = [v for metrics, _ in groups for m in metrics for v in m.variables]
        for variable, value in zip(variables, states, strict=True):
            variable.assign(value)
        values = {_prefixed(m.name, prefix): float(m.result()) for metrics, prefix in groups for m in metrics}
        for variable in variables:
            variable.assign(np.zeros(variable.shape))
        return values

    def _rows(self, part: Examples, indices: np.ndarray) -> tuple[Any, ...]:
        """A worker's rows. Without any, the first example stands in with no weight, so that no model sees an empty batch."""
        used = indices if len(indices) else np.zeros(1, dtype=np.int64)
        inputs, labels, weights = part.take(used)
        mask = np.full(len(used), float(len(indices) > 0), dtype=np.float32)
        return _tensors(inputs), labels, weights * mask, mask

    def _train_step(self, inputs: Any, labels: Any, weights: Any, mask: Any, size: Any, wish: Any) -> Any:
        def replica() -> Any:
            with tf.GradientTape() as tape:
                outputs = self.model(inputs, training=True)
                losses = self._loss(labels, outputs)
                loss = tf.reduce_sum(losses * weights) / size
                for penalty in self.model.losses:
                    loss += penalty / self.workers
            variables = self.model.trainable_variables
            gradients = self._mark_ready(tape.gradient(loss, [v.value for v in variables]))
            self._update(self.train_metrics, labels, outputs, losses, weights, mask)
            told = tf.stack([tf.cast(loss, tf.float32), wish])
            dense = [_dense(g, v) for g, v in zip(gradients, variables, strict=True)]
            *summed, told = sum_over_workers([*dense, told], self.workers, "step")
            there = [s if g is not None else None for g, s in zip(gradients, summed, strict=True)]
            # Keras is told the sums, so that it clips the gradients of the global batch.
            self.optimizer.apply(gradients if self.workers == 1 else there, variables)
            return told, dense

        return self._on_worker(replica)

    def _mark_ready(self, gradients: list[Any]) -> list[Any]:
        """Notes when this worker has computed its gradients: the rest of the step is spent with its peers."""
        if self.workers == 1:
            return gradients
        there = [g for g in gradients if g is not None]
        with tf.control_dependencies([g.values if isinstance(g, tf.IndexedSlices) else g for g in there]):
            noted = tf.numpy_function(self.clock.computed, [], tf.int64)
        with tf.control_dependencies([noted]):
            return [g if g is None else tf.identity(g) for g in gradients]

    def _validation_step(self, inputs: Any, labels: Any, weights: Any, mask: Any) -> None:
        def replica() -> Any:
            outputs = self.model(inputs, training=False)
            losses = self._loss(labels, outputs)
            self._update(self.validation_metrics, labels, outputs, losses, weights, mask)
            return tf.constant(0)

        self._on_worker(replica)

    def _update(
        self, metrics: list[Any], labels: Any, outputs: Any, losses: Any, weights: Any, mask: Any
    ) -> None:
        mean_loss, *others = metrics
        # A mean over examples of the weighted loss, as the step itself has it: the mask counts, the weight multiplies.
        mean_loss.update_state(losses * weights, sample_weight=mask)
        for metric in others:
            metric.update_state(labels, outputs, sample_weight=mask)

    def _on_worker(self, replica: Any) -> Any:
        """What `replica` gives; each worker is one replica, so that its results are plain tensors."""
        return tf.nest.map_structure(
            lambda result: self.strategy.experimental_local_results(result)[0], self.strategy.run(replica)
        )

    def _summed(self, vector: Any) -> Any:
        return self._on_worker(lambda: sum_over_workers([vector], self.workers, "state")[0])

    def _build_metrics(self, sample: Examples) -> None:
        """Some metrics create their variables on first use, which must not happen inside of a compiled step."""
        inputs, labels, weights, mask = self._rows(sample, np.zeros(0, dtype=np.int64))
        outputs = self.model(inputs, training=False)
        losses = self._loss(labels, outputs)
        if losses.shape.rank != 1:
            raise ConfigurationError(
                f"The loss must give one value per example, but gives shape {losses.shape}"
            )
        for metrics in (self.train_metrics, self.validation_metrics):
            self._update(metrics, labels, outputs, losses, weights, mask)
            for metric in metrics:
                metric.reset_state()


_LEAST_VECTOR = 1024


def _leave_gradients_alone(optimizer: Any) -> None:
    """Keeps Keras from summing over the workers what is summed already."""
    if not hasattr(optimizer, "_all_reduce_sum_gradients"):
        raise ConfigurationError(
            f"Keras {keras.__version__} sums gradients in another way than 3.15 does; install keras 3.15"
        )
    optimizer._all_reduce_sum_gradients = list
    if hasattr(optimizer, "inner_optimizer"):
        _leave_gradients_alone(optimizer.inner_optimizer)


def _dense(gradient: Any, variable: Any) -> Any:
    return tf.zeros(variable.shape, variable.dtype) if gradient is None else tf.convert_to_tensor(gradient)


def _loss_function(loss: Any) -> Any:
    found = keras.losses.get(loss)
    function = found.call if isinstance(found, keras.losses.Loss) else found

    def per_example(labels: Any, outputs: Any) -> Any:
        values = tf.convert_to_tensor(function(labels, outputs))
        return (
            tf.reduce_mean(values, axis=list(range(1, values.shape.rank)))
            if values.shape.rank > 1
            else values
        )

    return per_example


def _metric(metric: Any) -> Any:
    if isinstance(metric, str):
        found = keras.metrics.get(metric)
        return (
            found
            if isinstance(found, keras.metrics.Metric)
            else keras.metrics.MeanMetricWrapper(found, name=metric)
        )
    if isinstance(metric, type) and issubclass(metric, keras.metrics.Metric):
        return metric()
    return keras.metrics.MeanMetricWrapper(metric, name=metric.__name__)


def _signature(sample: Examples) -> list[Any]:
    inputs, labels, _ = sample.take(np.zeros(1, dtype=np.int64))

    def any_rows(tensor: Any) -> Any:
        return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)

    rows = [tf.nest.map_structure(any_rows, tensors) for tensors in (_tensors(inputs), tf.constant(labels))]
    column, number = tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)
    return [*rows, column, column, number, number]


def _tensors(inputs: Inputs) -> Any:
    """What the model is called with: one tensor, or a list of them."""
    return [tf.constant(part) for part in inputs] if isinstance(inputs, tuple) else tf.constant(inputs)


def _prefixed(name: str, prefix: str) -> str:
    return name if name.startswith(prefix) else prefix + name
