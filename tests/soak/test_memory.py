"""Memory stays flat over very many calls."""

from __future__ import annotations

import gc

import cirq
import numpy as np
import psutil
import pytest

from qflock.circuits.tensors import serialize
from qflock.engine.simulator import Simulator
from qflock.models.cluster_data import cluster_data
from qflock.models.qcnn import level

CALLS = 10_000


@pytest.mark.soak
def test_memory_is_flat_over_ten_thousand_gradients() -> None:
    qubits = cirq.GridQubit.rect(1, 8)
    model, survivors = level(qubits, "filter0")
    simulator = Simulator(model, [cirq.Z(qubit) for qubit in survivors])
    data = [serialize(circuit) for circuit in cluster_data(8, 46, seed=0).train_circuits]
    upstream = np.ones((len(data), simulator.observable_count))
    sizes = []
    for call in range(CALLS):
        simulator.vjp(np.full(simulator.parameter_count, call / CALLS), upstream, data)
        if call % 1000 == 999:
            gc.collect()
            sizes.append(psutil.Process().memory_info().rss)
    assert max(sizes) <= 1.02 * sizes[0], sizes
