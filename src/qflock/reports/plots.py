"""The plots of a report: training curves, predictions against labels, readouts over epochs, where time went."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from qflock.reports.reading import RunRecord
from qflock.reports.readouts import Readout
from qflock.reports.style import (
    COLORS,
    HATCHES,
    LINE_STYLES,
    MARKERS,
    Picture,
    draw,
    legend_text,
    logarithmic,
)

_MOST_POINTS = 1000
_MOST_CLASSES = 8
_WIDTH = 7.0


def curves(runs: Sequence[RunRecord]) -> list[Picture]:
    """The loss by step, and each metric by epoch with its validation beside it; runs share the axes."""
    pictures = [_step_loss(runs)] if any(run.steps for run in runs) else []
    names = dict.fromkeys(name.removeprefix("val_") for run in runs for name in run.metric_names())
    for number, name in enumerate(n for n in names if not is_time(n)):
        # Names of metrics may hold anything, which names of files may not.
        stem = name if name.isidentifier() and name.isascii() else f"metric{number}"
        paint = functools.partial(_metric, runs=runs, name=name)
        pictures.append(draw(f"curve-{stem}", f"{name} by epoch", (_WIDTH, 3.4), paint))
    return pictures


def is_time(name: str) -> bool:
    """Whether a value of an epoch says how long something took, or how fast it was.

    Example:
        >>> [is_time(name) for name in ("seconds", "step_seconds/quantum", "circuits_per_second/all", "loss")]
        [True, True, True, False]
    """
    kind = name.partition("/")[0]
    return kind.endswith(("seconds", "_per_second"))


def _step_loss(runs: Sequence[RunRecord]) -> Picture:
    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for number, run in enumerate(runs):
            x, low, mean, high = _thinned(*_columns(run.steps, "step", "loss"))
            axes.plot(x, mean, label=legend_text(run.label), **_look(number, markers=False))
            if len(run.steps) > _MOST_POINTS:
                axes.fill_between(x, low, high, color=COLORS[number % len(COLORS)], alpha=0.2, linewidth=0)
        axes.set(xlabel="step", ylabel="training loss")
        _legend(axes, len(runs) > 1)

    return draw("loss-by-step", "Training loss by step", (_WIDTH, 3.4), paint)


def _metric(figure: Any, runs: Sequence[RunRecord], name: str) -> None:
    axes = figure.subplots()
    for number, run in enumerate(runs):
        for validation, key in enumerate((name, f"val_{name}")):
            x, y = _columns(run.epochs, "epoch", key)
            part = ("training", "validation")[validation]
            label = f"{run.label}, {part}" if len(runs) > 1 else part
            look = _look(number if len(runs) > 1 else validation, markers=len(x) <= 60)
            look["linestyle"] = LINE_STYLES[validation]
            if len(x):
                axes.plot(x, y, label=legend_text(label), **look)
    axes.set(xlabel="epoch", ylabel=name)
    _legend(axes, True)


def predictions(name: str, label: str, outputs: np.ndarray, labels: np.ndarray) -> Picture:
    """Histograms of the predictions by label; a scatter where labels are not a few classes.

    Args:
        name: Of the picture.
        label: Of the run.
        outputs: `(values,)`.
        labels: `(values,)`.
    """

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        if len(classes) <= _MOST_CLASSES:
            bins = np.linspace(*_limits(outputs), 31)
            for number, value in enumerate(classes):
                axes.hist(
                    outputs[labels == value], bins=bins, label=f"label {value:g}", alpha=0.6,
                    color=COLORS[number % len(COLORS)], hatch=HATCHES[number % len(HATCHES)], edgecolor="white",
                )  # fmt: skip
            axes.set(xlabel="prediction", ylabel="examples")
            _legend(axes, True)
        else:
            low, high = _limits(np.concatenate([outputs, labels]))
            axes.plot([low, high], [low, high], color="black", linewidth=1, linestyle="--")
            axes.plot(labels, outputs, "o", color=COLORS[0], markersize=3)
            axes.set(xlabel="label", ylabel="prediction")

    finite = np.isfinite(outputs) & np.isfinite(labels)
    outputs, labels = outputs[finite], labels[finite]
    classes = np.unique(labels)
    return draw(name, f"Predictions against labels of {label}", (_WIDTH, 3.4), paint)


def readouts(name: str, label: str, found: Sequence[Readout]) -> Picture:
    """For each readout, the median over the epochs with the ranges that hold half and nine tenths of the values."""
    columns = min(3, len(found))
    rows = math.ceil(len(found) / columns)

    def paint(figure: Any) -> None:
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, readout in zip(grid, found, strict=False):
            q = readout.quantiles
            axes.fill_between(readout.steps, q[:, 0], q[:, 4], color=COLORS[4], alpha=0.3, label="90 %")
            axes.fill_between(readout.steps, q[:, 1], q[:, 3], color=COLORS[0], alpha=0.5, label="50 %")
            axes.plot(readout.steps, q[:, 2], color="black", marker="o", markersize=2, label="median")
            axes.set_title(legend_text(readout.name), fontsize=9)
        for axes in grid[len(found) :]:
            axes.set_visible(False)
        grid[0].legend(fontsize=8)
        figure.supxlabel("step")
        figure.supylabel("readout")

    caption = f"Distribution of the quantum readouts of {label} over the epochs"
    return draw(name, caption, (_WIDTH, 1.0 + 2.2 * rows), paint)


def times(name: str, label: str, run: RunRecord) -> Picture | None:
    """Seconds of each epoch, and beside it the parts of the mean step; None where no time was measured."""
    parts = [n for n in run.metric_names() if n.startswith("step_seconds/")]
    whole = [n for n in run.metric_names() if n == "seconds"]
    panels = [(names, title) for names, title in ((whole, "an epoch"), (parts, "the mean step")) if names]
    if not panels:
        return None

    def paint(figure: Any) -> None:
        for axes, (names, title) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            for number, part in enumerate(names):
                x, y = _columns(run.epochs, "epoch", part)
                label = legend_text(part.rpartition("/")[2])
                axes.plot(x, y, label=label, **_look(number, markers=len(x) <= 60))
            axes.set(xlabel="epoch", ylabel=f"seconds of {title}")
            logarithmic(axes, "y")  # the first epoch compiles, which takes many times the others
            _legend(axes, len(names) > 1)

    return draw(name, f"Where the time of {label} went", (_WIDTH, 3.0), paint)


def _columns(records: Sequence[dict[str, float]], x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Two values of those records that have both; a value that is not finite leaves a gap."""
    pairs = [(r[x], r[y]) for r in records if x in r and y in r]
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    table[~np.isfinite(table)] = np.nan
    return table[:, 0], table[:, 1]


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Place, lowest, mean and highest value of neighbouring points, so that long runs stay drawable."""
    if len(x) <= _MOST_POINTS:
        return x, y, y, y
    starts = np.linspace(0, len(x), _MOST_POINTS, endpoint=False).astype(np.int64)
    sizes = np.diff([*starts, len(x)])
    reduced = [f.reduceat(y, starts) for f in (np.minimum, np.add, np.maximum)]
    return x[starts], reduced[0], reduced[1] / sizes, reduced[2]


def _look(number: int, markers: bool) -> dict[str, Any]:
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": LINE_STYLES[number // len(COLORS) % len(LINE_STYLES)],
        "marker": MARKERS[number % len(MARKERS)] if markers else "",
        "markersize": 4,
    }


def _legend(axes: Any, wanted: bool) -> None:
    if wanted and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def _limits(values: np.ndarray) -> tuple[float, float]:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin
