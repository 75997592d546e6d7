"""What TensorBoard shows of a model: graph, circuits, hyper-parameters once, and the distributions of each epoch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import cirq
import numpy as np
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event

from qflock.circuits.tensors import deserialize
from qflock.errors import QflockError
from qflock.layers.readouts import quantum_layers, readouts_of
from qflock.training.events import Histogram, graph, picture, text
from qflock.training.pictures import circuit_picture

log = logging.getLogger("qflock")


def described(
    model: Any, hyperparameters: Mapping[str, Any], example: Any = None
) -> Callable[[], Iterator[Event]]:
    """Graph, circuits, hyper-parameters and layers of a model.

    Args:
        model: A built `keras.Model`.
        hyperparameters: By name.
        example: One row of the inputs; is drawn if it is a serialised circuit.

    Returns:
        Makes the events; may be called on another thread, since the model was traced before.
    """
    definition = graph_of(model)

    def events() -> Iterator[Event]:
        yield text("hyperparameters", _table(("name", "value"), hyperparameters.items()))
        yield text("model", _layers(model))
        if definition is not None:
            yield graph(definition)
        for layer in quantum_layers(model):
            yield from drawn(layer.name, getattr(layer, "model_circuit", None))
        yield from drawn("example", example_circuit(example))

    return events


def drawn(name: str, circuit: cirq.AbstractCircuit | None) -> Iterator[Event]:
    """A picture of a circuit, if there is one and it can be drawn."""
    if circuit is None:
        return
    try:
        yield picture(f"circuit/{name}", *circuit_picture(circuit))
    except Exception as error:  # a gate of the user's own that cannot be drawn must not end a training
        log.warning("The circuit of %s is not drawn: %r", name, error)


def example_circuit(example: Any) -> cirq.AbstractCircuit | None:
    """The circuit that one row of the inputs holds, if it holds one."""
    parts = example if isinstance(example, tuple | list) else [example]  # of several inputs
    items = [item for part in parts for item in np.asarray(part).ravel()[:1].tolist()]
    for item in items:
        with suppress(QflockError):  # text that is no circuit
            found = deserialize(item) if isinstance(item, bytes) else None
            if isinstance(found, cirq.AbstractCircuit):
                return found
    return None


def graph_of(model: Any) -> bytes | None:
    """The serialised graph of the model's call; None where its inputs are not known or it cannot be called with them."""
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return None
    signature = [tf.TensorSpec(i.shape, i.dtype) for i in inputs]

    def call(*tensors: Any) -> Any:
        return model(list(tensors) if len(tensors) > 1 else tensors[0], training=False)

    try:
        traced = tf.function(call, input_signature=signature).get_concrete_function()
    except (TypeError, ValueError) as error:  # a picture of a model must not end its training
        log.warning("The model's graph is not drawn: %s", error)
        return None
    return bytes(traced.graph.as_graph_def().SerializeToString())


def watch_readouts(model: Any) -> list[tuple[str, Any]]:
    """Begins to count the readouts of all quantum layers; returns the counts by the layers' names."""
    found = [(layer.name, readouts_of(layer.simulator)) for layer in quantum_layers(model)]
    for _, counts in found:
        counts.start()
    return found


def distributions(
    weights: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray], readouts: Mapping[str, Histogram]
) -> Mapping[str, Histogram]:
    """The histograms of an epoch by tag."""
    return (
        {f"readouts/{name}": value for name, value in readouts.items()}
        | {f"weights/{name}": Histogram.of(value) for name, value in weights.items()}
        | {f"gradients/{name}": Histogram.of(value) for name, value in gradients.items()}
    )


def norm(gradients: Mapping[str, np.ndarray]) -> float:
    """The Euclidean norm over all gradients together."""
    return float(np.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in gradients.values())))


def learning_rate(optimizer: Any) -> float:
    """Of the next step."""
    return float(np.asarray(optimizer.learning_rate))


def _layers(model: Any) -> str:
    rows = [(layer.name, f"{type(layer).__name__}, {layer.count_params()} weights") for layer in model.layers]
    return _table(("layer", "what"), rows)


def _table(head: tuple[str, str], rows: Any) -> str:
    lines = [" | ".join(head), "---|---", *(f"{name} | `{value}`" for name, value in rows)]
    return "\n".join(f"| {line} |" for line in lines)
