"""What the engine is doing, for whoever watches: named spans for a trace viewer, seconds at work, shares of long calls."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Span = Callable[..., AbstractContextManager[object]]

PREFIX = "qflock."
LARGE_QUBITS = 18  # smaller evaluations end before anyone can read how far they are


@dataclass(frozen=True, slots=True)
class Work:
    """What has been done since the process began; the difference of two is what was done between them.

    Args:
        seconds: During which at least one evaluation or compilation ran.
        circuits: Data circuits whose values were asked for.
        compiled: Circuits that were compiled.
    """

    seconds: float = 0.0
    circuits: int = 0
    compiled: int = 0

    def since(self, before: Work) -> Work:
        """What was added after `before`."""
        return Work(
            self.seconds - before.seconds,
            self.circuits - before.circuits,
            self.compiled - before.compiled,
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """What the engine does right now.

    Args:
        kind: "compile", "forward" or "backward".
        qubits: Of the state; 0 while compiling.
        started: `time.monotonic()` of its begin.
        share: How much of it is done, 0 to 1; 0 where it does not say.
    """

    kind: str
    qubits: int
    started: float
    share: float = 0.0


class Watch:
    """Counts the engine's work in this process and hands its spans to a tracer, if there is one."""

    def __init__(self) -> None:
        self.tracer: Span = lambda name, **details: nullcontext()
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._seconds, self._circuits, self._compiled = 0.0, 0, 0
        self.activity: Activity | None = None

    def work(self) -> Work:
        """What has been done so far."""
        with self._lock:
            running = time.perf_counter() - self._since if self._running else 0.0
            return Work(self._seconds + running, self._circuits, self._compiled)

    @contextmanager
    def span(self, kind: str, *, qubits: int = 0, batch: int = 0, threads: int = 0) -> Iterator[None]:
        """Marks a piece of the engine's work; spans may overlap and nest."""
        with self._lock:
            if not self._running:
                self._since = time.perf_counter()
            self._running += 1
        self.activity = Activity(kind, qubits, time.monotonic())
        try:
            with self.tracer(PREFIX + kind, qubits=qubits, batch=batch, threads=threads):
                yield
        finally:
            self.activity = None
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._seconds += time.perf_counter() - self._since

    def evaluated(self, circuits: int) -> None:
        """Counts circuits whose values were asked for."""
        with self._lock:
            self._circuits += circuits

    def compiling(self, function: Callable[P, R]) -> Callable[P, R]:
        """Marks a function that compiles one circuit."""

        @functools.wraps(function)
        def marked(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.span("compile"):
                result = function(*args, **kwargs)
            with self._lock:
                self._compiled += 1
            return result

        return marked

    def share_of(self, qubits: int) -> Callable[[float], None] | None:
        """Where a large evaluation says how far it is; None where nobody could read it in time."""
        return self._share if qubits >= LARGE_QUBITS else None

    def _share(self, share: float) -> None:
        now = self.activity
        if now is not None:
            self.activity = Activity(now.kind, now.qubits, now.started, share)


watch = Watch()
"""The one of this process: the engine's calls come from many layers and threads."""
