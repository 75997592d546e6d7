"""The worker's profiler server; that it serves is shown where the rendered pods run."""

from __future__ import annotations

import socket

import pytest

from qflock.cluster.profiler_server import PORT_VARIABLE, profiler_port, start_profiler_server
from qflock.errors import ConfigurationError


@pytest.mark.parametrize("text", ["", "no", "0", "65536", "-1", "2223.0"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="must be a port from 1 to 65535"):
        profiler_port({PORT_VARIABLE: text})


def test_no_port_is_asked_for_unless_it_is_set() -> None:
    assert profiler_port({}) is None


def test_a_taken_port_is_refused() -> None:
    with socket.create_server(("", 0)) as other, pytest.raises(ConfigurationError, match="must be free"):
        start_profiler_server(other.getsockname()[1])
