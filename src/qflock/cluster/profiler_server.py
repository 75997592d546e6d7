"""The sampling profiler of a worker, which answers `qflock profile` and TensorBoard's capture button."""

from __future__ import annotations

from qflock.cluster.ports import check_port


def start_profiler_server(port: int) -> None:
    """Serves profiles of this process on `port`, until the process ends.

    The port has neither authentication nor encryption.

    Args:
        port: A free one.

    Raises:
        ConfigurationError: If the port is taken.
    """
    check_port(port)
    import tensorflow as tf

    tf.profiler.experimental.server.start(port)
