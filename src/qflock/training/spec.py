"""What a run was asked to do, as one object that is stored in the run as JSON and holds nothing executable."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from qflock.errors import ConfigurationError, RunError
from qflock.models.cluster_data import check_examples, check_qubits
from qflock.models.qcnn import check_architecture

FORMAT = 1


@dataclass(frozen=True)
class RunSpec:
    """The request behind a run.

    Args:
        what: "qcnn", or `path/to/file.py:name` of an experiment.
        arguments: Of the ready model; empty for an experiment of the user's.
        epochs: Passes over the training examples.
        batch_size: Examples of one step over all workers.
        learning_rate: Of the optimiser.
        seed: Of data, initial weights and the order of the examples.
        checkpoint_seconds: Longest time between two checkpoints.
        keep: How many checkpoints are kept.
    """

    what: str
    arguments: dict[str, Any] = field(default_factory=dict)
    epochs: int = 50
    batch_size: int = 32
    learning_rate: float = 0.02
    seed: int = 0
    checkpoint_seconds: float = 60.0
    keep: int = 3

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("seed", 0), ("keep", 1)):
            _check_integer(name, getattr(self, name), least)
        for name in ("learning_rate", "checkpoint_seconds"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigurationError(f"Argument `{name}` must be a finite number above 0, but is {value}")
        if self.what == "qcnn":
            check_architecture(self.arguments["architecture"])
            check_qubits(self.arguments["qubits"])
            check_examples(self.arguments["examples"])

    def to_json(self) -> str:
        """The spec as JSON text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, where: str) -> RunSpec:
        """Inverse of `to_json`; `where` names the source in the error."""
        try:
            values = json.loads(text)
            version = values.pop("format")
            if version != FORMAT:
                raise RunError(
                    f"{where} must have format {FORMAT}, but has {version}: it needs another version of qflock"
                )
            return cls(**{key: values[key] for key in (f.name for f in fields(cls))})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{where} must describe a run, but cannot be read: {error!r}") from None


def _check_integer(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigurationError(f"Argument `{name}` must be at least {least}, but is {value}")
