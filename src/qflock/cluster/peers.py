"""How many workers answer, asked for in the background."""

from __future__ import annotations

import threading

from qflock.cluster.identity import Identity
from qflock.cluster.strategy import answers

SECONDS_BETWEEN = 5.0


class Peers:
    """Asks every worker's port from time to time, once somebody wants to know.

    Args:
        identity: Of this worker, which counts as alive.
    """

    def __init__(self, identity: Identity) -> None:
        self._others = [a for i, a in enumerate(identity.addresses) if i != identity.index]
        self._alive = identity.count
        self._thread: threading.Thread | None = None

    def alive(self) -> int:
        """How many answered the last time, this one included; all of them before anybody was asked."""
        if self._thread is None and self._others:
            self._thread = threading.Thread(target=self._ask, name="qflock-peers", daemon=True)
            self._thread.start()
        return self._alive

    def _ask(self) -> None:
        pause = threading.Event()
        while not pause.wait(SECONDS_BETWEEN):
            self._alive = 1 + sum(map(answers, self._others))
