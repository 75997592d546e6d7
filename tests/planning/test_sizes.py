"""Sizes come from the compiled program's real parts, not from the circuit's width."""

from __future__ import annotations

import cirq
import numpy as np
import pytest

from qflock.engine.loads import Load, loads
from qflock.engine.reductions import Reductions
from qflock.engine.simulator import Simulator
from qflock.models.cluster_data import cluster_data
from qflock.models.qcnn import qcnn_circuits
from qflock.planning.chart import chart_lines, ended
from qflock.planning.nodes import FLEETS
from qflock.planning.sizes import (
    MOST_QUBITS,
    KernelTime,
    kernel_times,
    largest_width,
    loads_of,
    measured_width,
    state_qubits,
    work_of,
)
from tests.planning.figures import RECKONING

GIB = 1 << 30


def test_loads_are_the_states_that_the_simulator_makes() -> None:
    (circuit, operators), *_ = qcnn_circuits("hybrid", 10)
    (data, *_) = cluster_data(10, 2, seed=1).train_circuits
    simulator = Simulator(circuit, operators)
    simulator.expectations(np.zeros(simulator.parameter_count), [data])
    made = {group.model.bits for group in simulator._groups}
    assert {load.qubits for load in loads(circuit, operators, data)} <= made
    whole = loads(circuit, operators, data, Reductions.none())
    gates = len(list(circuit.all_operations())) + len(list(data.all_operations()))
    assert [load.qubits for load in whole] == [10] and whole[0].gates >= gates


def test_equal_parts_count_once() -> None:
    a, b, c = cirq.LineQubit.range(3)
    circuit = cirq.Circuit(cirq.H.on_each(a, b, c), cirq.CX(b, c))
    assert loads(circuit, [cirq.Z(a), cirq.Z(a)]) == (Load(1, 1),)
    assert sum(load.work for load in loads(circuit, [cirq.Z(a), cirq.Z(c)])) == 2.0 + 3 * 4.0


def test_wide_hybrid_models_stay_cheap_and_full_ones_double() -> None:
    assert state_qubits("hybrid", 24) == state_qubits("hybrid", 32) == 12
    assert work_of("hybrid", 32) == pytest.approx(work_of("hybrid", 24), rel=0.5)
    assert [load.qubits for load in loads_of("full", 24)] == [24]
    assert largest_width("hybrid", 16 * GIB, GIB) == MOST_QUBITS
    # State and co-state of 28 qubits take 4 GiB, of 29 qubits 8 GiB.
    assert largest_width("full", 5 * GIB, GIB) == 28
    assert largest_width("full", 5 * GIB - 1, GIB) == 27
    assert largest_width("full", GIB, GIB) == 0


def test_what_is_large_is_measured_at_a_smaller_width() -> None:
    assert (measured_width("full", 24), measured_width("full", 10), measured_width("hybrid", 40)) == (
        16,
        10,
        40,
    )


def test_kernels_are_measured_up_to_twelve_qubits_at_least() -> None:
    times = kernel_times("full", seconds=0.0)
    assert [t.qubits for t in times] == [4, 6, 8, 10, 12]
    assert times[-1].seconds > times[0].seconds > 0


def test_chart_has_a_line_for_each_fleet_up_to_what_fits() -> None:
    times = [KernelTime(n, 1e-9 * work_of("full", n), work_of("full", n)) for n in (4, 8, 12)]
    lines = chart_lines("full", times, RECKONING, network_latency=1e-4)
    assert [line.name for line in lines] == [fleet.name for fleet in FLEETS]
    # 16 GiB hold the two states of 29 qubits, 32 GiB those of 30, beside the process.
    assert [max(line.qubits) for line in lines] == [28, 30, 30, 30]
    for line in lines:
        assert sorted(line.circuits_per_hour, reverse=True) == list(line.circuits_per_hour)
    laptop, *_, largest = (line.circuits_per_hour[-2] for line in lines)
    assert 100 < largest / laptop <= 1250
    assert [min(line.qubits) for line in ended(lines)] == [12] * 4
