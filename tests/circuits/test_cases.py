"""Circuits with values and gradients computed elsewhere: lowering and a dense evaluation agree with them."""

from __future__ import annotations

import json
from pathlib import Path

import cirq
import numpy as np
import pytest

from qflock.circuits.gates import Fixed, Rotation, lower_circuit
from qflock.circuits.observables import Observable, normalise
from qflock.circuits.symbols import Expressions, symbol_names
from qflock.circuits.tensors import deserialize, serialize
from tests.circuits import dense

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))
PAULI = {name: cirq.unitary(getattr(cirq, name)) for name in "XYZ"}


def _load(path: Path) -> tuple[dict, cirq.Circuit, list]:
    case = json.loads(path.read_text())
    circuit = cirq.read_json(json_text=json.dumps(case["circuit"]))
    return case, circuit, cirq.read_json(json_text=json.dumps(case["observables"]))


def _applied(observable: Observable, qubits: list[cirq.Qid], state: np.ndarray) -> np.ndarray:
    result = observable.constant * state
    for term in observable.terms:
        turned = state
        for qubit, letter in term.paulis:
            turned = dense.apply(PAULI[letter], [qubit], qubits, turned)
        result = result + term.coefficient * turned
    return result


def _run(parts: list[Fixed | Rotation], qubits: list[cirq.Qid], values: dict[str, float]) -> np.ndarray:
    state = np.eye(2 ** len(qubits), 1, dtype=complex)
    for part in parts:
        state = dense.apply(dense.matrix_of(part, values), part.qubits, qubits, state)
    return state


def test_there_are_cases():
    assert len(CASES) >= 23


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_expectations_and_gradients(path):
    case, circuit, operators = _load(path)
    observables = normalise(operators)
    values = dict(zip(case["symbols"], case["values"], strict=True))
    measured = {q for o in observables for t in o.terms for q, _ in t.paulis}
    qubits = sorted(circuit.all_qubits() | measured)
    parts = lower_circuit(circuit)
    state = _run(parts, qubits, values)
    costates = [_applied(o, qubits, state) for o in observables]
    np.testing.assert_allclose([np.vdot(state, c).real for c in costates], case["expectations"], atol=1e-9)
    if len(parts) > 40:
        return  # gradients below run the circuit once for each part
    rotations = [part for part in parts if isinstance(part, Rotation)]
    upstream = np.zeros((len(observables), len(rotations)))
    for k, turned in enumerate(rotations):
        # exp(i pi h x) P differentiated by x is a part with the same projectors and other weights
        weights = (
            1j * np.pi * turned.half_turns * np.exp(1j * np.pi * turned.half_turns * _angle(turned, values))
        )
        slope = Fixed(turned.qubits, np.tensordot(weights, turned.projectors, axes=1))
        changed = _run([slope if part is turned else part for part in parts], qubits, values)
        upstream[:, k] = [2 * np.vdot(c, changed).real for c in costates]
    expressions = Expressions([r.exponent for r in rotations], case["symbols"])
    x = np.broadcast_to(case["values"], (len(observables), len(values)))
    np.testing.assert_allclose(expressions.pullback(x, upstream), case["gradients"], atol=1e-9)


def _angle(part: Rotation, values: dict[str, float]) -> float:
    return float(part.exponent.subs(values).evalf())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_serialisation(path):
    case, circuit, operators = _load(path)
    assert deserialize(serialize(circuit)) == circuit
    assert set(symbol_names(circuit)) == set(case["symbols"])
    for operator in operators:
        assert deserialize(serialize(operator)) == cirq.PauliSum.wrap(operator)
