"""The plots of a plan, and its page."""

from __future__ import annotations

import math
import time
from typing import Any

from qflock.planning.chart import ended
from qflock.planning.plan import Plan
from qflock.planning.show import grids
from qflock.reports.page import Page, Part, Section, write
from qflock.reports.style import COLORS, MARKERS, Picture, draw, logarithmic
from qflock.training.store import Store

_SIZE = (7.0, 4.0)


def write_plan(plan: Plan, output: str) -> str:
    """Writes `plan.html`, `plan.json` and a PNG file of each plot; returns where the page is.

    Args:
        plan: What to show.
        output: Folder or URL.
    """
    target = Store(output)
    spec = plan.request.spec
    arguments = ", ".join(f"{name} {value}" for name, value in spec.arguments.items())
    pictures = [_steps(plan), _rates(plan), *([_chart(plan)] if plan.chart else [])]
    tables = [
        Section(grid.title, [Part(note=grid.note, header=grid.header, rows=grid.rows)])
        for grid in grids(plan)
    ]
    subtitle = f"{arguments}; epochs {spec.epochs}, batch size {spec.batch_size}. Measured {time.strftime('%Y-%m-%d %H:%M')}."
    page = Page(f"Plan for {spec.what}", subtitle, [*tables, Section("Plots", [Part(pictures=pictures)])])
    write(page, target, "plan.html")
    target.write("plan.json", plan.to_json().encode())
    return f"{target.url}/plan.html"


def _steps(plan: Plan) -> Picture:
    def paint(figure: Any) -> None:
        axes = figure.subplots()
        workers = [f.workers for f in plan.scaling]
        parts = ("kernel", "framework", "communication", "step")
        for number, part in enumerate(parts):
            axes.plot(
                workers, [getattr(f, part) or math.nan for f in plan.scaling], label=part, color=COLORS[number],
                marker=MARKERS[number], markersize=4, linewidth=2 if part == "step" else 1,
            )  # fmt: skip
        axes.set(xlabel="workers", ylabel="seconds of a step")
        logarithmic(axes, "xy")
        axes.legend(fontsize=8)

    caption = f"A step of the same batch, shared by 1 to 1000 workers, each on {plan.offers[0].node.name}"
    return draw("scaling-step", caption, _SIZE, paint)


def _rates(plan: Plan) -> Picture:
    series = (("the same batch", plan.scaling), ("a batch that grows with the workers", plan.growing))

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for number, (name, forecasts) in enumerate(series):
            axes.plot(
                [f.workers for f in forecasts], [f.circuits_per_hour for f in forecasts], label=name,
                color=COLORS[number], marker=MARKERS[number], markersize=4, linestyle="-" if number else "--",
            )  # fmt: skip
        axes.set(xlabel="workers", ylabel="circuits per hour")
        logarithmic(axes, "xy")
        axes.legend(fontsize=8)

    caption = f"Circuits that are trained on in an hour, by workers, each on {plan.offers[0].node.name}"
    return draw("scaling-rate", caption, _SIZE, paint)


def _chart(plan: Plan) -> Picture:
    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for number, (line, end) in enumerate(zip(plan.chart, ended(plan.chart), strict=True)):
            known = sum(n <= line.measured for n in line.qubits)
            look = {"color": COLORS[number], "marker": MARKERS[number], "markersize": 4}
            axes.plot(line.qubits[:known], line.circuits_per_hour[:known], label=line.name, **look)
            axes.plot(end.qubits, end.circuits_per_hour, linestyle=":", fillstyle="none", **look)
        axes.set(xlabel="qubits", ylabel="circuits per hour")
        logarithmic(axes, "y")
        axes.legend(fontsize=8)

    architecture = plan.request.spec.arguments["architecture"]
    caption = (
        f"Qubits of the {architecture} QCNN against circuits that are trained on in an hour; "
        "dotted: reckoned from the kernel of narrower ones; lines end where states no longer fit"
    )
    return draw("qubits", caption, _SIZE, paint)
