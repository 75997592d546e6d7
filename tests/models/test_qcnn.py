from __future__ import annotations

import cirq
import numpy as np
import pytest

from qflock.errors import ConfigurationError
from qflock.models.cluster_data import cluster_data
from qflock.models.qcnn import ARCHITECTURES, level, qcnn, tower


@pytest.mark.parametrize("qubits", [4, 5, 7, 8])
def test_levels_at_odd_and_even_widths(qubits: int) -> None:
    line = cirq.GridQubit.rect(1, qubits)
    circuit, survivors = level(line, "a")
    assert len(survivors) == (qubits + 1) // 2
    assert len(cirq.parameter_names(circuit)) == 21
    whole, last = tower(line)
    assert last == line[-1]
    assert cirq.parameter_names(whole) >= {"level0_conv00", "level1_pool5"}
    assert whole.all_qubits() == frozenset(line)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_gives_one_value_per_circuit(architecture: str) -> None:
    from qflock.layers import convert_to_tensor

    data = cluster_data(5, 10, seed=1)
    outputs = qcnn(architecture, 5)(convert_to_tensor(data.train_circuits))
    assert outputs.shape == (7, 1)


def test_data_depends_on_the_seed_alone_and_labels_follow_the_angle() -> None:
    first, again, other = (cluster_data(6, 40, seed) for seed in (3, 3, 4))
    assert first.train_circuits == again.train_circuits
    assert first.train_circuits != other.train_circuits
    for circuit, label in zip(first.train_circuits, first.train_labels[:, 0], strict=True):
        excitation = list(circuit.all_operations())[-1].gate
        assert isinstance(excitation, cirq.Rx)
        angle = float(excitation._rads)
        assert label == (1 if abs(angle) <= np.pi / 2 else -1)


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean 'hybrid'"):
        qcnn("hybird", 8)
    with pytest.raises(ConfigurationError, match=r"at least 4, but is 3"):
        qcnn("full", 3)
