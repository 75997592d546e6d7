"""What all workers together saw in an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from qflock.layers.readouts import Readouts
from qflock.training.events import Histogram
from qflock.training.pace import Pace
from qflock.training.steps import Steps

RATES = {f"{name}/all": name for name in ("examples_per_second", "circuits_per_second")}


@dataclass(frozen=True)
class Observation:
    """Of one epoch.

    Args:
        paces: Of each worker.
        gradients: Of the epoch's last step, over all workers, by the variable's path.
        readouts: Of the validation examples, over all workers, by the layer's name.
        metrics: Of training and validation, over all workers, by name.
    """

    paces: tuple[Pace, ...]
    gradients: dict[str, np.ndarray]
    readouts: dict[str, Histogram]
    metrics: dict[str, float]

    def rates(self) -> dict[str, float]:
        """Rates over all workers by tag."""
        return {tag: sum(pace.rates()[name] for pace in self.paces) for tag, name in RATES.items()}


def observe(steps: Steps, index: int, pace: Pace, readouts: Sequence[tuple[str, Readouts]]) -> Observation:
    """Adds up what each worker saw, in one reduction; every worker must call it. Metrics start anew.

    Args:
        steps: Of this worker.
        index: Of this worker.
        pace: Of this worker.
        readouts: The counts by the layer's name; they end here.
    """
    table = np.zeros((steps.workers, len(pace.vector())))
    table[index] = pace.vector()
    for _, each in readouts:
        each.stop()
    groups: list[list[Any]] = [
        [table],
        [each.counts for _, each in readouts],
        steps.gradients(),
        steps.metric_states(),
    ]
    summed = iter(steps.sum_over_workers([array for group in groups for array in group]))
    (paces,), counted, gradients, states = (list(islice(summed, len(group))) for group in groups)
    variables = steps.model.trainable_variables
    return Observation(
        tuple(Pace(*row) for row in paces.tolist()),
        {v.path: gradient for v, gradient in zip(variables, gradients, strict=True)},
        {name: Histogram(each.edges, n) for (name, each), n in zip(readouts, counted, strict=True)},
        steps.take_metrics(states),
    )
