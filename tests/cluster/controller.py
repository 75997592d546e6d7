"""Starts workers again that have failed, each on its own, as the controller of a cluster's job does."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PAUSE_SECONDS = 1.0


@dataclass
class Member:
    """One worker and how each of its processes has ended."""

    command: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[str] | None = None
    ends: list[tuple[float, int]] = field(default_factory=list)
    output: str = ""


class Controller:
    """Keeps workers running until each is done or has failed too often.

    Args:
        members: Command and environment of each worker.
        starts: How often each is started at most.
    """

    def __init__(self, members: Sequence[Member], starts: int) -> None:
        self.members = list(members)
        self._starts = starts
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._keep, args=(member,)) for member in self.members]
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether all are done, at the latest after `seconds`."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return all(member.ends and member.ends[-1][1] == 0 for member in self.members)

    def end(self) -> None:
        """Ends all."""
        self._over.set()
        for member in self.members:
            if member.process is not None:
                member.process.kill()
        for thread in self._threads:
            thread.join()

    def _keep(self, member: Member) -> None:
        while not self._over.is_set() and len(member.ends) < self._starts:
            member.process = subprocess.Popen(
                member.command,
                env=member.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            member.output += member.process.communicate()[0]
            member.ends.append((time.monotonic(), member.process.returncode))
            if member.process.returncode == 0:
                return
            self._over.wait(PAUSE_SECONDS)
