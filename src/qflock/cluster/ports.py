"""Free ports on this machine."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from qflock.errors import ConfigurationError


def free_ports(count: int) -> tuple[int, ...]:
    """Ports that are free now; all are held at once while they are picked, so that they differ."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def check_port(port: int) -> None:
    """Raises `ConfigurationError` if another process listens on `port` or it may not be used.

    TensorFlow itself would share a taken port without a word.
    """
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", port))
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"Port {port} must be free, but cannot be used ({error}); choose another"
        ) from None
