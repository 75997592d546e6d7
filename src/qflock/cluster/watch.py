"""Notices that another worker is gone, long before TensorFlow does, and leaves at once with the code for "start again".

TensorFlow waits for a lost peer inside of one call that lets no Python code run, for up to a minute on a busy machine,
and a process that then ends in the usual way can be aborted while TensorFlow shuts down. A thread that holds an idle
connection to each other worker's port sees it close when the process ends, and the kernel's keep-alive packets remain
without an answer when the machine is cut off. TensorFlow's server itself closes such a connection every other minute;
a new one then shows that it is still there.

The chief watches every worker and every worker the chief, which leaves as soon as it misses one: all others then miss
the chief. So a thousand workers hold two thousand connections, not a million.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from qflock.cluster.identity import Identity, split_address

RETRY_SECONDS = 1.0
SILENT_SECONDS = 10
REFUSALS = 2


class Watch:
    """Holds a connection to the chief, or as the chief to every other worker, until told to end.

    Args:
        identity: Of this worker.
        lost: Called once, from a thread, with one line that names a worker that is gone.
    """

    def __init__(self, identity: Identity, lost: Callable[[str], None]) -> None:
        self._lost, self._over, self._told = lost, threading.Event(), threading.Lock()
        self._count, self._silent = identity.count, set[str]()
        for index, address in enumerate(identity.addresses):
            if index != identity.index and (identity.chief or index == 0):
                name = f"worker {index} ({address})"
                threading.Thread(target=self._watch, args=(name, address), daemon=True).start()

    def end(self) -> None:
        """From now on the others may leave."""
        self._over.set()

    def alive(self) -> int:
        """How many workers answer, as the chief knows, this one included."""
        return self._count - len(self._silent)

    def _watch(self, name: str, address: str) -> None:
        answered, refused, how = time.monotonic(), 0, ""
        while not self._over.is_set():
            try:
                with socket.create_connection(split_address(address), timeout=RETRY_SECONDS) as link:
                    self._silent.discard(name)
                    _wait_until_closed(link)
                answered, refused = time.monotonic(), 0
            except ConnectionRefusedError:
                refused, how = refused + 1, "has ended"
                self._silent.add(name)
            except OSError as error:
                refused, how = 0, f"has not answered for {SILENT_SECONDS} s ({error})"
                self._silent.add(name)
            if refused >= REFUSALS or time.monotonic() - answered > SILENT_SECONDS:
                self._tell(f"{name} {how}")
            self._over.wait(RETRY_SECONDS)

    def _tell(self, message: str) -> None:
        with self._told:
            if not self._over.is_set():
                self._over.set()
                self._lost(message)


def _wait_until_closed(link: socket.socket) -> None:
    """Returns when the other side has closed it; `OSError` when its machine has not answered for `SILENT_SECONDS`."""
    for option, value in (
        (socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, SILENT_SECONDS),
    ):  # fmt: skip
        link.setsockopt(socket.IPPROTO_TCP, option, value)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.settimeout(None)
    with suppress(ConnectionResetError):
        while link.recv(4096):
            continue
