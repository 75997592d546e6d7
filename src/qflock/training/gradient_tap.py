"""The gradients of `model.fit`, which Keras hands to no callback."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


class GradientTap:
    """Keeps a copy of what the model's optimiser is given, from the next step on.

    Args:
        model: A compiled `keras.Model`, between whose steps this is called.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._optimizer = model, model.optimizer
        self._kept = {
            v.path: tf.Variable(tf.zeros(v.shape), trainable=False) for v in model.trainable_variables
        }
        apply = self._optimizer.apply

        def keep_and_apply(grads: Any, trainable_variables: Any = None) -> Any:
            grads = list(grads)
            variables = (
                model.trainable_variables if trainable_variables is None else list(trainable_variables)
            )
            for gradient, variable in zip(grads, variables, strict=True):
                if gradient is not None:
                    self._kept[variable.path].assign(tf.cast(tf.convert_to_tensor(gradient), tf.float32))
            return apply(grads, variables)

        self._optimizer.apply = keep_and_apply
        self._retrace()

    def read(self) -> dict[str, np.ndarray]:
        """The last step's gradients by the variable's path."""
        return {path: np.array(kept.numpy()) for path, kept in self._kept.items()}

    def close(self) -> None:
        """Gives the optimiser back as it was."""
        del self._optimizer.apply
        self._retrace()

    def _retrace(self) -> None:
        """A step that was compiled before would go on as it was."""
        self._model.make_train_function(force=True)
