from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cluster.namespaces import network, reason_for_none

KNOCK = "import socket, sys; socket.create_connection((sys.argv[1], 9), timeout=1)"


@pytest.mark.skipif(reason_for_none() is not None, reason=f"no network namespaces here: {reason_for_none()}")
def test_a_cut_lets_no_packet_pass_and_can_be_mended() -> None:
    with network(2) as net:

        def knock() -> str:
            command = net.command(1, [sys.executable, "-c", KNOCK, net.addresses[0]])
            return subprocess.run(command, capture_output=True, text=True, check=False).stderr

        assert "ConnectionRefusedError" in knock()  # nobody listens, but the machine answers
        net.cut(0)
        assert "TimeoutError" in knock()
        net.mend(0)
        assert "ConnectionRefusedError" in knock()
