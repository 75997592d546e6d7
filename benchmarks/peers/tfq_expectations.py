"""Expectations of a workload whose parameters are `(examples, symbols)`, as JSON: reference for our tests."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import cirq
import numpy as np
import sympy
import tensorflow_quantum as tfq
from harness import load_workload
from tfq import encoding, operation


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    workload = load_workload(source)
    qubits = cirq.GridQubit.rect(1, workload.qubits)
    symbols = [sympy.Symbol(f"p{index:03}") for index in range(workload.parameters.shape[1])]
    preparation = cirq.Circuit(operation(gate, qubits, symbols) for gate in workload.preparation)
    model = cirq.Circuit(operation(gate, qubits, symbols) for gate in workload.model)
    expectations = tfq.layers.Expectation()(
        [preparation + encoding(angles, qubits) + model for angles in workload.angles],
        symbol_names=symbols,
        symbol_values=workload.parameters.astype(np.float32),
        operators=[cirq.Z(qubits[readout]) for readout in workload.readouts],
    )
    target.write_text(json.dumps({"version": tfq.__version__, "expectations": expectations.numpy().tolist()}))


if __name__ == "__main__":
    main()
