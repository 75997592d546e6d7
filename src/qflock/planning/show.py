"""A plan as tables: for the terminal, and the same ones for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from qflock.engine.memory import readable
from qflock.planning.plan import Offer, Plan
from qflock.planning.reckoning import Forecast
from qflock.planning.sizes import MOST_QUBITS


@dataclass(frozen=True)
class Grid:
    """A table: what it shows, the heads of its columns, and its rows."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def print_plan(plan: Plan, console: Console) -> None:
    """Prints all tables."""
    for grid in grids(plan):
        table = Table(title=grid.title, title_justify="left")
        for number, name in enumerate(grid.header):
            table.add_column(name, justify="right" if number else "left")
        for row in grid.rows:
            table.add_row(*row)
        console.print(table)
        console.print(f"{grid.note}\n", markup=False, highlight=False)


def grids(plan: Plan) -> list[Grid]:
    """What was measured, this machine, node types, and the scaling."""
    return [_measured(plan), _here(plan), _offers(plan), _scaling(plan)]


def _measured(plan: Plan) -> Grid:
    alone, pair = plan.alone, plan.pair
    kernel = [m.gradient_seconds(m.rows) for m in (alone, pair)]
    rows = (
        ("threads of each worker", str(alone.threads), str(pair.threads)),
        ("examples of a step, each", str(alone.rows), str(pair.rows)),
        ("step", duration(alone.step), duration(pair.step)),
        ("of it kernel", duration(kernel[0]), duration(kernel[1])),
        ("one hop of a reduction", "", duration(pair.latency)),
        ("bandwidth of a reduction", "", f"{readable(int(pair.bytes_per_second))}/s"),
        ("compiling a data circuit", duration(alone.place), duration(pair.place)),
        ("start", duration(alone.start), duration(pair.start)),
        ("memory of the process", readable(alone.memory), readable(pair.memory)),
    )
    note = (
        f"states of {', '.join(map(str, sorted(set(plan.training.qubits)))) or 'no'} qubits for each example"
    )
    if plan.training.work_ratio != 1:
        note += (
            f"; measured at {plan.measured_qubits} qubits, "
            f"the kernel is {plan.training.work_ratio:,.0f} times that at the width asked for"
        )
    return Grid("Measured on this machine", note, ("", "1 worker", "2 workers"), rows)


def _here(plan: Plan) -> Grid:
    needed, free = plan.memory_here
    verdict = "fits" if needed <= free else "DOES NOT FIT"
    note = f"one worker takes {readable(needed)} of {readable(free)} that are free: {verdict}"
    if plan.largest_here is not None:
        note += f"; the widest that fits has {width(plan.largest_here)} qubits"
    return Grid("This machine, shared by the workers", note, _FORECAST, tuple(map(_forecast, plan.here)))


def _offers(plan: Plan) -> Grid:
    request = plan.request
    header = ("node type", "threads", "memory", "widest", "step", "epoch", "total", "dollars")
    note = (
        f"one worker on each of {request.workers} nodes; {'spot' if request.spot else 'on-demand'} prices of "
        f"{plan.prices_of}, {request.region}, without tax and cluster; cores as fast as those here"
    )
    title = f"{request.workers} nodes"
    return Grid(title, note, header, tuple(map(_offer, plan.offers)))


def _offer(offer: Offer) -> tuple[str, ...]:
    memory = readable(offer.memory) + ("" if offer.fits else f" > {readable(offer.node.memory)}")
    forecast = offer.forecast
    times = (duration(t) if offer.fits else "-" for t in (forecast.step, forecast.epoch, forecast.total))
    dollars = "?" if offer.dollars is None else f"{offer.dollars:,.2f}" if forecast.total < _NEVER else "-"
    return (
        offer.node.name, str(offer.node.threads), memory, width(offer.largest), *times, dollars if offer.fits else "-"
    )  # fmt: skip


def _scaling(plan: Plan) -> Grid:
    one = plan.scaling[0]
    rows = tuple(
        (
            *_forecast(forecast), f"{one.step / forecast.step:.1f}", _count(forecast.preemptions),
            f"{grown.circuits_per_hour:,.0f}",
        )
        for forecast, grown in zip(plan.scaling, plan.growing, strict=True)
    )  # fmt: skip
    header = (*_FORECAST, "speed-up", "preemptions", "circuits/h, grown batch")
    node = plan.offers[0].node.name
    note = "speed-up: the same batch, shared by more workers; grown batch: as many examples for each worker"
    return Grid(f"1 to 1000 workers, each on {node}", note, header, rows)


_FORECAST = ("workers", "kernel", "framework", "communication", "step", "epoch", "total", "circuits/h")


def _forecast(forecast: Forecast) -> tuple[str, ...]:
    times = (
        forecast.kernel, forecast.framework, forecast.communication, forecast.step, forecast.epoch, forecast.total
    )  # fmt: skip
    return (str(forecast.workers), *map(duration, times), f"{forecast.circuits_per_hour:,.0f}")


def _count(number: float) -> str:
    return f"{number:,.1f}" if number < 1e6 else "-"


def width(qubits: int | None) -> str:
    """A number of qubits; wide models beyond the search are not told apart."""
    return "-" if qubits is None else f"{qubits} or more" if qubits >= MOST_QUBITS else str(qubits)


def duration(seconds: float) -> str:
    """A time for people.

    Example:
        >>> [duration(t) for t in (2e-5, 0.0123, 4.2, 130.0, 7300.0, 4e5, 1e12)]
        ['20 us', '12.3 ms', '4.2 s', '2.2 min', '2.0 h', '4.6 d', 'never']
    """
    if seconds > _NEVER:
        return "never"
    for unit, size, least in _UNITS:
        if seconds >= least:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds * 1e6:.0f} us"


_NEVER = 100 * 365 * 86400.0
_UNITS: Sequence[tuple[str, float, float]] = (
    ("d", 86400, 2 * 86400), ("h", 3600, 3600), ("min", 60, 100), ("s", 1, 1), ("ms", 1e-3, 1e-3)
)  # fmt: skip
