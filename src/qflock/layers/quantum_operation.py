"""A simulator as a differentiable TensorFlow operation."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from qflock.engine.simulator import Simulator
from qflock.engine.watch import watch
from qflock.errors import CircuitError, EngineError
from qflock.layers.readouts import note

# The engine knows no TensorFlow; from here on its work shows in TensorFlow's profiles.
watch.tracer = tf.profiler.experimental.Trace


def expectation_operation(simulator: Simulator, circuits: Any, parameters: Any) -> Any:
    """Expectation values of a batch of data circuits, differentiable by the parameters.

    No custom TensorFlow operation is involved, so that any TensorFlow build will do: `tf.numpy_function` calls the
    engine, which releases the interpreter lock while it works.

    Args:
        simulator: The compiled model circuit and observables.
        circuits: String tensor `(batch,)`.
        parameters: Float tensor `(parameters,)`, shared by the batch.

    Returns:
        Float tensor `(batch, observables)` of the parameters' dtype.
    """

    @tf.custom_gradient
    def operation(values: Any) -> tuple[Any, Any]:
        result = _call(lambda c, v: _forward(simulator, c, v), [circuits, values], values.dtype)
        result.set_shape([None, simulator.observable_count])

        return result, lambda upstream: derivative(values, upstream)

    @tf.custom_gradient
    def derivative(values: Any, upstream: Any) -> tuple[Any, Any]:
        result = _call(
            lambda c, v, u: _backward(simulator, c, v, u), [circuits, values, upstream], values.dtype
        )
        result.set_shape([simulator.parameter_count])
        return result, _no_second_derivative

    # A plain tensor, not the variable: `custom_gradient` would ask for the gradient of variables that it finds.
    return operation(tf.identity(parameters))


def _no_second_derivative(*_: Any) -> Any:
    """Without this, TensorFlow would take second derivatives for zero."""
    raise EngineError(
        "A quantum layer must be differentiated once only: second derivatives, as of a gradient penalty, are not offered"
    )


def _call(function: Any, arguments: list[Any], dtype: Any) -> Any:
    """In eager mode the engine is called directly, so that its errors arrive as they are."""
    if tf.executing_eagerly():
        return tf.constant(function(*[a.numpy() for a in arguments]), dtype=dtype)
    return tf.numpy_function(function, arguments, dtype, stateful=False)


def _forward(simulator: Simulator, circuits: Any, values: Any) -> Any:
    data = list(circuits)
    result = simulator.expectations(values, data)
    note(simulator, data, result)
    return result.astype(values.dtype)


def _backward(simulator: Simulator, circuits: Any, values: Any, upstream: Any) -> Any:
    return simulator.vjp(values, upstream, list(circuits))[1].astype(values.dtype)


def as_circuit_tensor(inputs: Any) -> Any:
    """Input of a layer as a string tensor `(batch,)`; a column `(batch, 1)` is flattened."""
    tensor = tf.convert_to_tensor(inputs)
    if tensor.shape.rank not in (None, 1) and not (tensor.shape.rank == 2 and tensor.shape[1] in (None, 1)):
        raise CircuitError(
            f"Circuits must be a string tensor of the shape (batch,) or (batch, 1), but have {tuple(tensor.shape)}"
        )
    return tf.reshape(tensor, [-1])
