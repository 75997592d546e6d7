"""Writes the values of TensorFlow Quantum that our tests compare with, without needing it themselves."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.peers.environments import TENSORFLOW_QUANTUM, run_script
from benchmarks.peers.harness import save_workload
from benchmarks.workloads import SEED, hybrid, to_workload
from qflock.engine.simulator import Simulator

INPUTS = 50
QUBITS = 8


def write_reference(output: Path) -> None:
    """Angles of half the inputs are on one qubit, of the other half on all."""
    task = hybrid(QUBITS, INPUTS)
    angles = np.where(np.arange(INPUTS)[:, None] % 2, hybrid(QUBITS, INPUTS, dense=True).angles, task.angles)
    symbols = Simulator(task.model, task.observables).symbols
    parameters = np.random.default_rng(SEED).uniform(-2, 2, (INPUTS, len(symbols))).astype(np.float32)
    workload = replace(to_workload(task), angles=angles.astype(np.float32), parameters=parameters)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "inputs.npz"), Path(folder, "expectations.json")
        save_workload(workload, source)
        run_script(TENSORFLOW_QUANTUM, source, target, "tfq_expectations")
        theirs = json.loads(target.read_text())
    reference = {
        "source": f"TensorFlow Quantum {theirs['version']}, hybrid QCNN; `python -m benchmarks reference`",
        "qubits": QUBITS,
        "symbols": symbols,
        "angles": _rounded(workload.angles),
        "parameters": _rounded(parameters),
        "expectations": _rounded(np.array(theirs["expectations"])),
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(reference) + "\n")


def _rounded(array: np.ndarray) -> list[list[float]]:
    """Eight digits, enough for float32."""
    return [[float(f"{value:.8g}") for value in row] for row in array]
