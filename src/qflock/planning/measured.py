"""What the measuring processes hand back, and what they are asked."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qflock.training.spec import RunSpec


@dataclass(frozen=True)
class Question:
    """What is measured.

    Args:
        spec: The training, with as many examples as are needed for measuring.
        trusted: The `file.py:name` of the command line, for an experiment of the user's own.
        seconds: How long measuring may take, about, without start-up.
        asked: When, in seconds since 1970.
    """

    spec: RunSpec
    trusted: str | None
    seconds: float
    asked: float

    def to_json(self) -> str:
        """As text for another process."""
        return json.dumps({**asdict(self), "spec": self.spec.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Question:
        """Inverse of `to_json`."""
        values = json.loads(text)
        return cls(**{**values, "spec": RunSpec.from_json(values["spec"], "the question")})


@dataclass(frozen=True)
class Measured:
    """Times in seconds and sizes in bytes, as one worker saw them while all of them worked.

    Args:
        workers: Processes on this machine.
        threads: Of each.
        start: From asking until everything is built and the first step is compiled.
        place: Compiling one new data circuit.
        memory: Resident size of the process.
        step: A whole training step, with all that the loop does between two.
        rest: Of an epoch, beyond its steps and the kernel of its validation.
        rows: Examples of that step on this worker.
        batches: Sizes for which the kernel was measured, ascending.
        gradient: Kernel of a training step, forward and backward, at these sizes.
        forward: Kernel of a validation, at these sizes.
        one_thread: `gradient` at the largest size with one thread.
        latency: One hop of a reduction over the workers; 0 for one worker.
        bytes_per_second: Of such a reduction; 0 for one worker.
        parameter_bytes: Size of the gradient.
        example_bytes: Size of one stored example.
        train_examples: In the data that was built.
        validation_examples: In the data that was built.
        qubits: Of each state that one example needs.
        work: Amplitudes times gates that one example needs.
    """

    workers: int
    threads: int
    start: float
    place: float
    memory: int
    step: float
    rest: float
    rows: int
    batches: tuple[int, ...]
    gradient: tuple[float, ...]
    forward: tuple[float, ...]
    one_thread: float
    latency: float
    bytes_per_second: float
    parameter_bytes: int
    example_bytes: int
    train_examples: int
    validation_examples: int
    qubits: tuple[int, ...]
    work: float

    def gradient_seconds(self, rows: float) -> float:
        """Kernel of a training step on `rows` examples."""
        return between(rows, self.batches, self.gradient)

    def forward_seconds(self, rows: float) -> float:
        """Kernel of a validation of `rows` examples."""
        return between(rows, self.batches, self.forward)

    def to_json(self) -> str:
        """As text for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Measured:
        """Inverse of `to_json`."""
        values: dict[str, Any] = json.loads(text)
        numbers: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**numbers)


def between(rows: float, batches: tuple[int, ...], seconds: tuple[float, ...]) -> float:
    """Straight lines between the sizes that were measured, and in proportion beyond the largest."""
    if not batches:
        return 0.0
    if rows > batches[-1]:
        return seconds[-1] * rows / batches[-1]
    return float(np.interp(rows, batches, seconds))
