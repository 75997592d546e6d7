"""The same expectations as TensorFlow Quantum's, from values that were stored with its release 0.7.6."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cirq
import numpy as np
import pytest

from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator
from qflock.models.cluster_data import cluster_state
from qflock.models.qcnn import level

REFERENCE = Path(__file__).parents[1] / "data" / "tfq_expectations.json"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return json.loads(REFERENCE.read_text())


@pytest.mark.parametrize("reductions", [Reductions(), Reductions.none()], ids=["reduced", "general"])
def test_hybrid_qcnn_has_the_same_expectations(reference: dict[str, Any], reductions: Reductions) -> None:
    qubits = cirq.GridQubit.rect(1, reference["qubits"])
    model, survivors = level(qubits, "filter0")
    simulator = Simulator(
        model, [cirq.Z(q) for q in survivors], symbols=reference["symbols"], reductions=reductions
    )
    data = [
        cluster_state(qubits)
        + cirq.Circuit(cirq.rx(angle)(q) for angle, q in zip(row, qubits, strict=True) if angle)
        for row in reference["angles"]
    ]
    assert len(data) == 50
    measured = simulator.expectations(np.array(reference["parameters"]), data)
    np.testing.assert_allclose(measured, reference["expectations"], rtol=0, atol=1e-5)
