"""Excitations of cluster states: the data of the quantum convolutional network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cirq
import numpy as np

from qflock.errors import ConfigurationError

TRAIN_SHARE = 0.7
SMALLEST_WIDTH = 4


@dataclass(frozen=True)
class ClusterData:
    """Circuits with labels +1 or -1, split for training and validation."""

    train_circuits: tuple[cirq.Circuit, ...]
    train_labels: np.ndarray
    validation_circuits: tuple[cirq.Circuit, ...]
    validation_labels: np.ndarray


def check_qubits(qubits: int) -> None:
    """Raises `ConfigurationError` below four qubits."""
    if qubits < SMALLEST_WIDTH:
        raise ConfigurationError(f"Argument `qubits` must be at least {SMALLEST_WIDTH}, but is {qubits}")


def check_examples(examples: int) -> None:
    """Raises `ConfigurationError` where the split would leave one side empty."""
    if examples < 2:
        raise ConfigurationError(
            f"Argument `examples` must be at least 2 (one to train on, one to validate), but is {examples}"
        )


def train_count(examples: int) -> int:
    """How many of the examples are for training; at least one is left on either side.

    Example:
        >>> train_count(160)
        112
    """
    return min(max(round(TRAIN_SHARE * examples), 1), examples - 1)


def cluster_state(qubits: Sequence[cirq.Qid]) -> cirq.Circuit:
    """Prepares the cluster state on a ring: a Hadamard on every qubit, a CZ on every neighbouring pair."""
    neighbours = [*qubits[1:], qubits[0]]
    return cirq.Circuit(
        cirq.H.on_each(*qubits), (cirq.CZ(a, b) for a, b in zip(qubits, neighbours, strict=True))
    )


def cluster_data(qubits: int, examples: int, seed: int) -> ClusterData:
    """Cluster states with an Rx of random angle on one random qubit; excited (-1) where |angle| > pi/2, else +1.

    Args:
        qubits: Width, at least 4.
        examples: How many circuits in all, at least 2; 70 % of them are for training.
        seed: The same seed gives the same data everywhere.

    Returns:
        The data, with labels as float32 columns `(examples, 1)`.

    Raises:
        ConfigurationError: If `qubits` or `examples` is too small.

    Example:
        >>> data = cluster_data(qubits=4, examples=10, seed=0)
        >>> len(data.train_circuits), data.validation_labels.shape
        (7, (3, 1))
    """
    check_qubits(qubits)
    check_examples(examples)
    line = cirq.GridQubit.rect(1, qubits)
    generator = np.random.default_rng([seed, 0x434C5553])
    angles = generator.uniform(-np.pi, np.pi, examples)
    excited = generator.integers(qubits, size=examples)
    prepare = cluster_state(line)
    circuits = [prepare + cirq.Circuit(cirq.rx(a)(line[q])) for a, q in zip(angles, excited, strict=True)]
    labels = np.where(np.abs(angles) <= np.pi / 2, 1.0, -1.0).astype(np.float32)[:, None]
    split = train_count(examples)
    return ClusterData(tuple(circuits[:split]), labels[:split], tuple(circuits[split:]), labels[split:])
