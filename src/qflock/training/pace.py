"""How fast a worker is, and where the time of its steps goes."""

from __future__ import annotations

import time
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from qflock.engine.watch import PREFIX, watch


@dataclass(frozen=True)
class Pace:
    """The steps of an epoch on one worker; all times in seconds, over all of these steps.

    Args:
        steps: How many.
        examples: That this worker handled.
        circuits: Whose values the engine computed.
        seconds: In all.
        input: To fetch and convert the examples.
        quantum: In the engine.
        communication: From this worker's own gradients to the end of the step, waiting for peers included.
    """

    steps: float = 0.0
    examples: float = 0.0
    circuits: float = 0.0
    seconds: float = 0.0
    input: float = 0.0
    quantum: float = 0.0
    communication: float = 0.0

    def vector(self) -> NDArray[np.float64]:
        """The numbers in the order of the fields."""
        return np.array(astuple(self))

    def rates(self) -> dict[str, float]:
        """What is shown: per second, and seconds of the mean step by part.

        Example:
            >>> Pace(steps=2, examples=8, seconds=4, quantum=3).rates()["step_seconds/classical"]
            0.5
        """
        seconds, steps = self.seconds or 1.0, self.steps or 1.0
        classical = max(0.0, self.seconds - self.input - self.quantum - self.communication)
        return {
            "examples_per_second": self.examples / seconds,
            "circuits_per_second": self.circuits / seconds,
            "step_seconds/total": self.seconds / steps,
            "step_seconds/input": self.input / steps,
            "step_seconds/quantum": self.quantum / steps,
            "step_seconds/classical": classical / steps,
            "step_seconds/communication": self.communication / steps,
        }


class Clock:
    """Adds up the times of a worker's steps."""

    def __init__(self) -> None:
        self._computed_at = 0.0
        self._waiting: Any = None
        self.start()

    def step(self, examples: int, started: float, prepared: float) -> None:
        """A step has ended.

        Args:
            examples: That it handled on this worker.
            started: `time.perf_counter()` of its begin.
            prepared: When its inputs were ready.
        """
        now = time.perf_counter()
        if self._waiting is not None:
            self._waiting.__exit__(None, None, None)
            self._waiting = None
            self._sums["communication"] += now - self._computed_at
        self._sums["steps"] += 1
        self._sums["examples"] += examples
        self._sums["seconds"] += now - started
        self._sums["input"] += prepared - started

    def computed(self) -> np.int64:
        """This worker has its own gradients and now depends on its peers; called from within the step."""
        self._computed_at = time.perf_counter()
        # Ends in `step`, on another thread, which the tracer allows.
        self._waiting = tf.profiler.experimental.Trace(f"{PREFIX}wait for peers")
        self._waiting.__enter__()
        return np.int64(0)

    def take(self) -> Pace:
        """The sums since the last call."""
        work = watch.work().since(self._work)
        pace = Pace(**self._sums | {"circuits": work.circuits, "quantum": work.seconds})
        self.start()
        return pace

    def start(self) -> None:
        """Begins anew, after work that belongs to no step."""
        self._sums = dict.fromkeys(asdict(Pace()), 0.0)
        self._work = watch.work()
