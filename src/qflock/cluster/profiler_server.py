"""TensorFlow's profiler server of a worker, from which a running training is captured."""

from __future__ import annotations

from collections.abc import Mapping

from qflock.cluster.ports import check_port
from qflock.errors import ConfigurationError

PORT_VARIABLE = "QFLOCK_PROFILER_PORT"


def start_profiler_server(port: int) -> None:
    """Serves captures on all of this machine's addresses until the process ends.

    The server has neither authentication nor encryption.

    Args:
        port: On which it listens.

    Raises:
        ConfigurationError: If another process listens there.
    """
    check_port(port)
    import tensorflow as tf

    tf.profiler.experimental.server.start(port)


def profiler_port(environment: Mapping[str, str]) -> int | None:
    """The port that QFLOCK_PROFILER_PORT asks for, or None where it is not set.

    Raises:
        ConfigurationError: If it is no port.

    Example:
        >>> profiler_port({"QFLOCK_PROFILER_PORT": "2223"})
        2223
    """
    text = environment.get(PORT_VARIABLE)
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ConfigurationError(f"{PORT_VARIABLE} must be a port from 1 to 65535, but is {text!r}")
    return int(text)
