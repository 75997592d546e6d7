"""Arguments of the engine that cannot be meant: one line each, before any work."""

from __future__ import annotations

from typing import Any

import cirq
import pytest
import sympy

import qflock
from qflock.engine.simulator import Simulator
from qflock.errors import CircuitError, EngineError, SymbolError

Q = cirq.LineQubit(0)
CIRCUIT = cirq.Circuit(cirq.rx(sympy.Symbol("a"))(Q))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reductions": False}, "`reductions` must be a Reductions"),
        ({"memory_budget": "1GiB"}, "`memory_budget` must be a whole number of at least 1, but is '1GiB'"),
        ({"memory_budget": -1}, "`memory_budget` must be a whole number of at least 1, but is -1"),
        ({"threads": 1.5}, "`threads` must be a whole number of at least 1, but is 1.5"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        Simulator(CIRCUIT, cirq.Z(Q), **options)


def test_symbols_twice() -> None:
    with pytest.raises(SymbolError, match="each symbol once"):
        Simulator(CIRCUIT, cirq.Z(Q), symbols=["a", "a"])


def test_one_circuit_in_place_of_a_list() -> None:
    with pytest.raises(CircuitError, match="must be a list of circuits"):
        Simulator(CIRCUIT, cirq.Z(Q)).expectations([0.3], cirq.Circuit(cirq.X(Q)))  # type: ignore[arg-type]


def test_angles_that_have_lost_their_direction() -> None:
    with pytest.raises(SymbolError, match="below 1e"):
        qflock.expectation(CIRCUIT, cirq.Z(Q), {"a": 1e300})


def test_values_may_be_a_resolver_but_no_list() -> None:
    resolver = cirq.ParamResolver({"a": 0.3})
    assert qflock.expectation(CIRCUIT, cirq.Z(Q), resolver) == qflock.expectation(
        CIRCUIT, cirq.Z(Q), {"a": 0.3}
    )
    with pytest.raises(SymbolError, match="must be a dictionary"):
        qflock.expectation(CIRCUIT, cirq.Z(Q), [0.3])  # type: ignore[arg-type]
