"""The Keras backend that the layers need."""

from __future__ import annotations

from qflock.errors import ConfigurationError


def require_tensorflow_backend() -> None:
    """Checks that Keras is there and runs on TensorFlow.

    Raises:
        ConfigurationError: If TensorFlow or Keras is missing, or Keras uses another backend.
    """
    try:
        import keras
        import tensorflow  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"Package {missing.name!r} is missing, which the layers need; "
            "install it with `pip install 'qflock[train-cpu]'` (or 'qflock[train]' for TensorFlow with GPU support)"
        ) from None
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise ConfigurationError(
            f"Keras must use the backend 'tensorflow', but uses {backend!r}; set KERAS_BACKEND=tensorflow before the "
            "first import of keras"
        )
