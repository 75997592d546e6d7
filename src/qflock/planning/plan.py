"""The plan: measured here, reckoned for this machine, for node types, and for 1 to 1000 workers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from qflock.deploy.prices import read_prices
from qflock.engine.processor import available_memory
from qflock.errors import ConfigurationError
from qflock.models.cluster_data import TRAIN_SHARE, train_count
from qflock.planning.chart import Line, chart_lines
from qflock.planning.machine import measure_machine
from qflock.planning.measured import Measured
from qflock.planning.nodes import Node, node_of
from qflock.planning.reckoning import Conditions, Forecast, Reckoning, Training, memory_needed
from qflock.planning.sizes import kernel_times, largest_width, loads_of, measured_width, work_of
from qflock.training.spec import RunSpec

SCALE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_MOST_MEASURED_ROWS = 256
_MEASURED_STEPS = 4  # of an epoch


@dataclass(frozen=True)
class Request:
    """What is to be planned.

    Args:
        spec: The training.
        trusted: The `file.py:name` of the command line, for an experiment of the user's own.
        workers: On nodes of their own, one each.
        node_types: Where they could run.
        region: Of the cloud.
        spot: Whether nodes may be taken away, at the price of such nodes.
        price_per_hour: Dollars of one node, in place of the table's.
        preemptions_per_hour: Of one node.
        network_latency: Seconds of one hop between nodes.
        node_start: Seconds until a node is there with its image.
        seconds: How long measuring may take, about, without start-up.
    """

    spec: RunSpec
    trusted: str | None = None
    workers: int = 2
    node_types: tuple[str, ...] = ("e2-standard-8", "n2-standard-8", "c3-standard-22")
    region: str = "us-central1"
    spot: bool = False
    price_per_hour: float | None = None
    preemptions_per_hour: float = 0.0
    network_latency: float = 1e-4
    node_start: float = 60.0
    seconds: float = 4.0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigurationError(f"Argument `workers` must be at least 1, but is {self.workers}")
        if not self.node_types:
            raise ConfigurationError("Option --node-type must be given at least once")
        for name in ("price_per_hour", "preemptions_per_hour", "network_latency", "node_start"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigurationError(
                    f"Argument `{name}` must be a finite number of at least 0, but is {value}"
                )
        if not 0.5 <= self.seconds <= 600:
            raise ConfigurationError(f"Argument `seconds` must be between 0.5 and 600, but is {self.seconds}")


@dataclass(frozen=True)
class Offer:
    """The training on one type of node.

    Args:
        node: The type.
        memory: Bytes that each worker needs.
        fits: Whether it has them.
        largest: Qubits of the widest model that fits; None where the model's width cannot be changed.
        forecast: On the workers asked for.
        dollars: For all nodes until it is done; None where the price is not known.
    """

    node: Node
    memory: int
    fits: bool
    largest: int | None
    forecast: Forecast
    dollars: float | None


@dataclass(frozen=True)
class Plan:
    """The answers.

    Args:
        request: What was asked.
        training: Its size.
        alone: What one worker measured.
        pair: What two workers measured.
        measured_qubits: Width that was measured, where it is not the one asked for.
        here: On this machine with one and with two workers.
        memory_here: Bytes that one worker takes, and how many are free.
        largest_here: Qubits of the widest model that fits here.
        offers: For each type of node.
        scaling: On the first type, the same batch shared by ever more workers.
        growing: On the first type, a batch that grows with the workers.
        chart: Circuits per hour by qubits.
        prices_of: Date of the prices.
    """

    request: Request
    training: Training
    alone: Measured
    pair: Measured
    measured_qubits: int | None
    here: tuple[Forecast, ...]
    memory_here: tuple[int, int]
    largest_here: int | None
    offers: tuple[Offer, ...]
    scaling: tuple[Forecast, ...]
    growing: tuple[Forecast, ...]
    chart: tuple[Line, ...]
    prices_of: str

    def to_json(self) -> str:
        """The plan as one JSON object; what never ends is null."""
        return json.dumps(_finite(asdict(self)))


def make_plan(request: Request, told: Callable[[str], None] = lambda text: None) -> Plan:
    """Measures this machine and reckons.

    Args:
        request: What to plan.
        told: Called with what is being done.

    Raises:
        ConfigurationError: If the training cannot run, or a node type is unknown.
    """
    prices = read_prices()
    nodes = [
        node_of(name, prices, request.region, request.spot, request.price_per_hour)
        for name in request.node_types
    ]
    measured_spec = _measured_spec(request.spec)
    told("measuring one worker")
    alone = measure_machine(measured_spec, request.trusted, 1, request.seconds)
    told("measuring two workers that share this machine")
    pair = measure_machine(measured_spec, request.trusted, 2, request.seconds)
    told("measuring widths, reckoning")
    reckoning, training = Reckoning(alone, pair), _training(request.spec, alone)
    architecture = request.spec.arguments.get("architecture")
    stored = alone.example_bytes * (training.train + training.validation)
    conditions = Conditions(
        nodes[0].threads, request.network_latency, request.node_start, request.preemptions_per_hour,
        request.spec.checkpoint_seconds,
    )  # fmt: skip

    def offer(node: Node) -> Offer:
        rows = math.ceil(training.batch_size / request.workers)
        memory = memory_needed(alone.memory, training.qubits, node.threads, rows, stored, node.memory)
        forecast = reckoning.elsewhere(training, request.workers, replace(conditions, threads=node.threads))
        dollars = None if node.price is None else node.price * request.workers * forecast.total / 3600
        largest = largest_width(architecture, node.memory, alone.memory + stored) if architecture else None
        return Offer(node, memory, memory <= node.memory, largest, forecast, dollars)

    growing = [replace(training, batch_size=training.batch_size * w) for w in SCALE]
    free = available_memory()
    memory = memory_needed(alone.memory, training.qubits, alone.threads, training.batch_size, stored, free)
    return Plan(
        request=request,
        training=training,
        alone=alone,
        pair=pair,
        measured_qubits=measured_spec.arguments.get("qubits"),
        here=tuple(reckoning.here(training, w) for w in (1, 2)),
        memory_here=(memory, free),
        largest_here=largest_width(architecture, free, alone.memory + stored) if architecture else None,
        offers=tuple(map(offer, nodes)),
        scaling=tuple(reckoning.elsewhere(training, w, conditions) for w in SCALE),
        growing=tuple(reckoning.elsewhere(t, w, conditions) for t, w in zip(growing, SCALE, strict=True)),
        chart=_chart(architecture, request, reckoning) if architecture else (),
        prices_of=prices.date,
    )


def _measured_spec(spec: RunSpec) -> RunSpec:
    """The same training with few examples, and with states that are quick; one of the user's own as it is."""
    if spec.what != "qcnn":
        return spec
    arguments = dict(spec.arguments)
    rows = min(spec.batch_size, _MOST_MEASURED_ROWS)
    arguments["examples"] = min(arguments["examples"], round(_MEASURED_STEPS * rows / TRAIN_SHARE))
    arguments["qubits"] = measured_width(arguments["architecture"], arguments["qubits"])
    return replace(spec, arguments=arguments, batch_size=rows)


def _training(spec: RunSpec, measured: Measured) -> Training:
    if spec.what != "qcnn":
        return Training(
            measured.train_examples,
            measured.validation_examples,
            spec.epochs,
            spec.batch_size,
            measured.qubits,
        )
    examples, architecture, qubits = (spec.arguments[n] for n in ("examples", "architecture", "qubits"))
    train = train_count(examples)
    return Training(
        train, examples - train, spec.epochs, spec.batch_size,
        tuple(load.qubits for load in loads_of(architecture, qubits)), work_of(architecture, qubits) / measured.work,
    )  # fmt: skip


def _chart(architecture: str, request: Request, reckoning: Reckoning) -> tuple[Line, ...]:
    times = kernel_times(architecture, request.seconds / 2)
    return chart_lines(architecture, times, reckoning, request.network_latency)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
