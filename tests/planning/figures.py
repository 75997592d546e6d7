"""Measurements with round numbers, so that what follows from them can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

from qflock.deploy.prices import read_prices
from qflock.planning.chart import Line
from qflock.planning.measured import Measured
from qflock.planning.nodes import node_of
from qflock.planning.plan import SCALE, Offer, Plan, Request
from qflock.planning.reckoning import Conditions, Reckoning, Training
from qflock.training.spec import RunSpec

ALONE = Measured(
    workers=1, threads=2, start=5.0, place=0.001, memory=1 << 29, step=0.010, rows=32, batches=(1, 16, 32),
    gradient=(0.001, 0.003, 0.006), forward=(0.0005, 0.001, 0.002), one_thread=0.010, rest=0.005,
    latency=0.0, bytes_per_second=0.0, parameter_bytes=1000, example_bytes=300, train_examples=64,
    validation_examples=28, qubits=(8,), work=1e5,
)  # fmt: skip
PAIR = replace(
    ALONE, workers=2, threads=1, step=0.013, rows=16, batches=(1, 16), gradient=(0.001, 0.004),
    forward=(0.0005, 0.001), rest=0.007, latency=0.0005, bytes_per_second=1e6,
)  # fmt: skip
RECKONING = Reckoning(ALONE, PAIR)
TRAINING = Training(train=112, validation=48, epochs=10, batch_size=32, qubits=(8,))
QCNN = {"architecture": "full", "qubits": 8, "examples": 160}


def made_plan() -> Plan:
    """A plan from these figures, on nodes that are taken away so often that a training never ends."""
    restless = Conditions(8, preemptions_per_hour=1e4)
    scaling = tuple(RECKONING.elsewhere(TRAINING, w, restless) for w in SCALE)
    node = node_of("n2-standard-8", read_prices(), "us-central1", spot=True, price=None)
    return Plan(
        Request(RunSpec("qcnn", QCNN), node_types=("n2-standard-8",)), TRAINING, ALONE, PAIR, 8,
        tuple(RECKONING.here(TRAINING, w) for w in (1, 2)), (1 << 29, 1 << 34), 30,
        (Offer(node, 1 << 29, True, 30, scaling[1], None),), scaling, scaling,
        (Line("one laptop", 6, (4, 6, 8), (3e6, 2e6, 1e6)),), "2026-07-22",
    )  # fmt: skip
