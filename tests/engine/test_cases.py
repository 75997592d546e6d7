"""Circuits whose values and gradients were computed independently, in complex128."""

from __future__ import annotations

import json
from pathlib import Path

import cirq
import numpy as np
import pytest

from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))
TOLERANCE = {"complex64": 1e-5, "complex128": 1e-9}


@pytest.mark.parametrize("lanes", ["batch", "amplitude"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("reductions", [Reductions(), Reductions.none()], ids=["reduced", "whole"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path, dtype, lanes, reductions):
    case = json.loads(path.read_text())
    circuit = cirq.read_json(json_text=json.dumps(case["circuit"]))
    observables = cirq.read_json(json_text=json.dumps(case["observables"]))
    values = dict(zip(case["symbols"], case["values"], strict=True))
    simulator = Simulator(circuit, observables, dtype=dtype, lanes=lanes, reductions=reductions)
    parameters = np.array([values[name] for name in simulator.symbols])
    for k, row in enumerate(case["gradients"]):
        upstream = np.eye(len(observables))[[k]]
        result, gradient = simulator.vjp(parameters, upstream)
        np.testing.assert_allclose(result[0], case["expectations"], atol=TOLERANCE[dtype])
        by_name = dict(zip(case["symbols"], row, strict=True))
        expected = [by_name[name] for name in simulator.symbols]
        np.testing.assert_allclose(gradient, expected, atol=TOLERANCE[dtype])
