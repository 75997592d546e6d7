from __future__ import annotations

import socket
import threading
import time

from qflock.cluster.identity import Identity
from qflock.cluster.watch import Watch


def test_a_worker_that_has_ended_is_named_unless_it_may() -> None:
    listener, freed = socket.create_server(("localhost", 0)), socket.create_server(("localhost", 0))
    stays, goes = (f"localhost:{each.getsockname()[1]}" for each in (listener, freed))
    told, may_go = [], []
    noticed = threading.Event()

    def lost(message: str) -> None:
        told.append((message, time.monotonic()))
        noticed.set()

    identity = Identity(("localhost:1", stays, goes), 0)
    watch, allowing = Watch(identity, lost), Watch(identity, may_go.append)
    time.sleep(1.5)
    assert not told
    allowing.end()
    freed.close()
    gone = time.monotonic()
    assert noticed.wait(10)
    watch.end()
    message, when = told[0]
    assert message == f"worker 2 ({goes}) has ended"
    assert when - gone < 4 and len(told) == 1 and not may_go
    listener.close()
