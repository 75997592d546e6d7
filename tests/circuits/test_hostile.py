"""Serialised circuits that were made to run code when they are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cirq
import numpy as np
import pytest
import sympy

from qflock import expectation
from qflock.circuits.tensors import _framed, deserialize, serialize
from qflock.circuits.trees import cirq_text, expression_of
from qflock.errors import QflockError, TensorFormatError


def _not(code: str) -> object:
    return {"cirq_type": "sympy.Not", "args": [code]}


def _index(code: str) -> object:
    return {"cirq_type": "sympy.Indexed", "args": ["a", code]}


def _value(code: str) -> object:
    inner = cirq.FrozenCircuit(cirq.X(cirq.q(0)) ** (2 * sympy.Symbol("a") + 1))
    text = cirq_text(cirq.CircuitOperation(inner, param_resolver={"a": 0.25}))
    return text.replace("0.25", json.dumps(code))


def _formula(code: str) -> object:
    text = cirq_text(cirq.BooleanHamiltonianGate(["x"], ["x"], 0.1).on(cirq.q(0)))
    return text.replace('"boolean_strs":["x"]', f'"boolean_strs":[{json.dumps(code)}]')


@pytest.mark.parametrize("place", [_not, _index, _value, _formula])
def test_no_text_is_evaluated(tmp_path: Path, place: Callable[[str], object]) -> None:
    proof = tmp_path / "executed"
    text = place(f"__import__('pathlib').Path({str(proof)!r}).touch()")
    body = {"operation": text if isinstance(text, str) else json.dumps(text)}
    assert str(proof) in body["operation"]
    content = {"qubits": [0], "templates": [[0, 0, body]], "moments": [[0]]}
    with pytest.raises(QflockError):
        expectation(deserialize(_framed(b"c", content, [])), cirq.Z(cirq.q(0)))
    assert not proof.exists()


def test_the_same_without_code_is_read() -> None:
    gate = cirq.BooleanHamiltonianGate(["x", "y"], ["x & (y | ~x)"], 0.1)
    inner = cirq.FrozenCircuit(cirq.X(cirq.q(0)) ** (2 * sympy.Symbol("a") + 1))
    circuit = cirq.Circuit(
        gate.on(*cirq.LineQubit.range(2)), cirq.CircuitOperation(inner, param_resolver={"a": 0.25})
    )
    back = deserialize(serialize(circuit))
    assert back == circuit
    np.testing.assert_allclose(
        cirq.unitary(cirq.Circuit(cirq.decompose(back))), cirq.unitary(circuit), atol=1e-8
    )


@pytest.mark.parametrize(
    "kind", ["sympy.Not", "pandas.DataFrame", "SympyCondition", "NoSuchType", "datetime.datetime"]
)
def test_what_is_no_part_of_a_circuit_is_refused_by_name(kind: str) -> None:
    content = {
        "qubits": [0],
        "templates": [[0, 0, {"operation": json.dumps({"cirq_type": kind})}]],
        "moments": [[0]],
    }
    with pytest.raises(TensorFormatError, match=rf"holds a {kind}"):
        deserialize(_framed(b"c", content, []))


@pytest.mark.parametrize(
    "tree", [["/", ["{}"]], ["/", 1, ["{}"]], ["float", ["{}"], 53], ["float", {"{}": 1}, 53]]
)
def test_no_text_of_a_tree_is_evaluated(tmp_path: Path, tree: object) -> None:
    proof = tmp_path / "executed"
    text = json.dumps(tree).replace("{}", f"__import__('pathlib').Path({str(proof)!r}).touch()")
    with pytest.raises((ValueError, TypeError)):
        expression_of(json.loads(text))
    assert not proof.exists()
