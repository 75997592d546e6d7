"""Qubits against circuits per hour, for machines from a laptop to ten thousand cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qflock.planning.nodes import FLEETS, Fleet
from qflock.planning.reckoning import Conditions, Reckoning, Training
from qflock.planning.sizes import KernelTime, largest_width, loads_of, work_of

ROWS_PER_WORKER = 256
_WIDEST = 40
_STEP = 2


@dataclass(frozen=True)
class Line:
    """One line of the chart.

    Args:
        name: Of the machines.
        measured: Up to this width the kernel was measured; beyond, it is reckoned from its work.
        qubits: Widths, up to the largest that fits.
        circuits_per_hour: Trained on, at each width.
    """

    name: str
    measured: int
    qubits: tuple[int, ...]
    circuits_per_hour: tuple[float, ...]


def chart_lines(
    architecture: str, times: Sequence[KernelTime], reckoning: Reckoning, network_latency: float
) -> tuple[Line, ...]:
    """A line for each of `FLEETS`, with 256 examples for each worker in a step.

    Args:
        architecture: Of the QCNN.
        times: Measured on this machine with all its threads, narrow ones first.
        reckoning: For everything but the kernel.
        network_latency: Seconds of one hop between nodes.
    """

    def rate(fleet: Fleet, qubits: int) -> float:
        source = max((t for t in times if t.qubits <= qubits), key=lambda t: t.qubits)
        seconds = source.seconds * work_of(architecture, qubits) / source.work
        per_circuit = reckoning.alone.gradient_seconds(ROWS_PER_WORKER) / ROWS_PER_WORKER
        training = Training(
            ROWS_PER_WORKER * fleet.workers, 0, 1, ROWS_PER_WORKER * fleet.workers,
            tuple(load.qubits for load in loads_of(architecture, qubits)), seconds / per_circuit,
        )  # fmt: skip
        conditions = Conditions(fleet.threads, network_latency if fleet.workers > 1 else 0.0)
        return reckoning.elsewhere(training, fleet.workers, conditions).circuits_per_hour

    lines = []
    for fleet in FLEETS:
        widest = min(_WIDEST, largest_width(architecture, fleet.memory, reckoning.alone.memory))
        qubits = tuple(range(times[0].qubits, widest + 1, _STEP))
        lines.append(Line(fleet.name, times[-1].qubits, qubits, tuple(rate(fleet, n) for n in qubits)))
    return tuple(lines)


def ended(lines: Sequence[Line]) -> list[Line]:
    """Only the reckoned ends of lines, from the last measured width on."""
    return [
        replace(
            line,
            qubits=tuple(n for n in line.qubits if n >= line.measured),
            circuits_per_hour=tuple(
                r for n, r in zip(line.qubits, line.circuits_per_hour, strict=True) if n >= line.measured
            ),
        )
        for line in lines
    ]
