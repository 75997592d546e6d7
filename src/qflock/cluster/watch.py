"""Notices that another worker is gone, long before TensorFlow does, and leaves at once with the code for "start again".

TensorFlow waits for a lost peer inside of one call that lets no Python code run, for up to a minute on a busy machine,
and a process that then ends in the usual way can be aborted while TensorFlow shuts down. A thread that knocks at the
other workers' ports sees a dead process within two seconds, because its port refuses, and a machine that is cut off
within `SILENT_SECONDS`, because it does not answer.

The chief knocks at every worker and every worker at the chief, which leaves as soon as it misses one: all others then
miss the chief. So a thousand workers knock two thousand times a second, not a million times.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from qflock.cluster.identity import Identity, split_address

KNOCK_SECONDS = 1.0
SILENT_SECONDS = 10.0
REFUSALS = 2


class Watch:
    """Knocks at the chief, or as the chief at every other worker, until told to end.

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
        """How many workers answered the last time, this one included."""
        return self._count - len(self._silent)

    def _watch(self, name: str, address: str) -> None:
        answered, refused = time.monotonic(), 0
        while not self._over.wait(KNOCK_SECONDS):
            answer = _knock(address)
            if answer is None:
                answered, refused = time.monotonic(), 0
                self._silent.discard(name)
                continue
            self._silent.add(name)
            refused = refused + 1 if isinstance(answer, ConnectionRefusedError) else 0
            silent = time.monotonic() - answered
            if refused >= REFUSALS or silent > SILENT_SECONDS:
                how = "has ended" if refused else f"has not answered for {silent:.0f} s ({answer})"
                self._tell(f"{name} {how}")

    def _tell(self, message: str) -> None:
        with self._told:
            if not self._over.is_set():
                self._over.set()
                self._lost(message)


def _knock(address: str) -> OSError | None:
    """None where somebody listens."""
    try:
        socket.create_connection(split_address(address), timeout=KNOCK_SECONDS).close()
    except OSError as error:
        return error
    return None
