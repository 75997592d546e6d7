"""The report of one run, or of several side by side."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from qflock.errors import ConfigurationError, QflockError
from qflock.reports import plots
from qflock.reports.models import circuits_of, predictions_of
from qflock.reports.page import Page, Part, Section, write
from qflock.reports.reading import RunRecord, read_runs
from qflock.reports.readouts import read_readouts
from qflock.reports.style import Picture, require_report_packages
from qflock.training.store import Store


def write_report(urls: Sequence[str], output: str | None = None, trusted: str | None = None) -> str:
    """Writes one self-contained HTML page about runs, and a PNG file of each plot beside it.

    Args:
        urls: Folders or URLs of the runs; the first one gives the page its name.
        output: Folder or URL to write to; by default `report` in the first run.
        trusted: The `file.py:name` behind the runs, for circuits and predictions of the user's own models.

    Returns:
        Where the page is.

    Raises:
        ConfigurationError: If a package is missing, or a run is named twice.
        RunError: If a run is missing, of another version, without metrics, or the output cannot be written.
    """
    require_report_packages()
    names = [url.rstrip("/") for url in urls]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"Each run must be named once, but these are given: {', '.join(names)}")
    runs = read_runs(names)
    target = Store(output or f"{names[0]}/report")
    name = "report.html" if len(runs) == 1 else "compare.html"
    write(page_of(runs, trusted), target, name)
    return f"{target.url}/{name}"


def page_of(runs: Sequence[RunRecord], trusted: str | None = None) -> Page:
    """The page; a section that lacks its data says so, and why."""
    sections = [
        Section("Summary", [_summary(runs)]),
        Section("Training curves", [Part(pictures=plots.curves(runs))]),
        Section(
            "Predictions against labels", [_predictions(n, r, runs, trusted) for n, r in enumerate(runs)]
        ),
        Section("Quantum readouts", [_readouts(n, r, runs) for n, r in enumerate(runs)]),
        Section("Circuits", [_circuits(n, r, runs, trusted) for n, r in enumerate(runs)]),
        Section("Where time went", [_times(n, r, runs) for n, r in enumerate(runs)]),
        Section("Versions and machine", [_environment(r, runs) for r in runs]),
        Section("Repeat it", [_repeat(r, runs) for r in runs]),
    ]
    title = runs[0].label if len(runs) == 1 else f"{len(runs)} runs: {', '.join(r.label for r in runs)}"
    return Page(title, f"Report of qflock, made {time.strftime('%Y-%m-%d %H:%M')}", sections)


def _summary(runs: Sequence[RunRecord]) -> Part:
    facts = [_facts(run) for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    rows = [(name, *(each.get(name, "") for each in facts)) for name in names]
    unreadable = [f"{r.label}: {r.unreadable}" for r in runs if r.unreadable]
    note = (
        f"Lines of metrics that could not be read and were left out: {', '.join(unreadable)}."
        if unreadable
        else ""
    )
    return Part(note=note, header=("", *(run.label for run in runs)) if len(runs) > 1 else (), rows=rows)


def _facts(run: RunRecord) -> dict[str, str]:
    spec = run.spec
    last = run.epochs[-1] if run.epochs else {}
    steps = max((int(r["step"]) for r in run.steps), default=run.status.step)
    return {
        "run": run.store.url,
        "state": run.status.state,
        "model": spec.what,
        **{name: str(value) for name, value in spec.arguments.items()},
        "epochs done": f"{len(run.epochs)} of {spec.epochs}",
        "steps": f"{steps:,}",
        "batch size": str(spec.batch_size),
        "learning rate": f"{spec.learning_rate:g}",
        "seed": str(spec.seed),
        **{f"last {n}": f"{last[n]:.6g}" for n in run.metric_names() if n in last and not plots.is_time(n)},
        "seconds of all epochs": f"{sum(r.get('seconds', 0.0) for r in run.epochs):.1f}",
    }


def _predictions(number: int, run: RunRecord, runs: Sequence[RunRecord], trusted: str | None) -> Part:
    try:
        outputs, labels = predictions_of(run, trusted)
    except QflockError as error:
        return Part(_heading(run, runs), note=f"No predictions: {error}")
    accuracy, squared = np.mean(outputs * labels > 0), np.mean((outputs - labels) ** 2)
    note = f"{len(labels):,} values: mean squared error {squared:.6f}, accuracy of the sign {accuracy:.4f}."
    picture = plots.predictions(_name("predictions", number, runs), run.label, outputs, labels)
    return Part(_heading(run, runs), note=note, pictures=[picture])


def _readouts(number: int, run: RunRecord, runs: Sequence[RunRecord]) -> Part:
    found = read_readouts(run.store)
    if not found:
        return Part(_heading(run, runs), note="This run holds no histograms of readouts.")
    return Part(
        _heading(run, runs), pictures=[plots.readouts(_name("readouts", number, runs), run.label, found)]
    )


def _circuits(number: int, run: RunRecord, runs: Sequence[RunRecord], trusted: str | None) -> Part:
    for earlier in runs[:number]:
        if (earlier.spec.what, earlier.spec.arguments) == (run.spec.what, run.spec.arguments):
            return Part(_heading(run, runs), note=f"The same as those of {earlier.label}.")
    try:
        pictures: list[Picture] = circuits_of(run, _name("circuit", number, runs), trusted)
    except QflockError as error:
        return Part(_heading(run, runs), note=f"No circuits: {error}")
    return Part(_heading(run, runs), note="" if pictures else "The model has no circuits.", pictures=pictures)


def _times(number: int, run: RunRecord, runs: Sequence[RunRecord]) -> Part:
    picture = plots.times(_name("times", number, runs), run.label, run)
    if picture is None:
        return Part(_heading(run, runs), note="This run holds no times.")
    rows = [
        _time_row(name, [r[name] for r in run.epochs if name in r])
        for name in run.metric_names()
        if plots.is_time(name)
    ]
    return Part(
        _heading(run, runs),
        header=("by epoch", "median", "sum", "least", "most"),
        rows=rows,
        pictures=[picture],
    )


def _time_row(name: str, values: list[float]) -> tuple[str, ...]:
    total = f"{sum(values):.3f}" if name == "seconds" else ""
    return (
        name.replace("_", " "),
        f"{np.median(values):.4g}",
        total,
        f"{min(values):.4g}",
        f"{max(values):.4g}",
    )


def _environment(run: RunRecord, runs: Sequence[RunRecord]) -> Part:
    rows = []
    for group in ("versions", "machine"):
        found: Any = run.environment.get(group)
        if isinstance(found, dict):
            rows += [(str(name), str(value)) for name, value in found.items()]
    note = "" if rows else "This run does not say with which versions it was made."
    return Part(_heading(run, runs), note=note, rows=rows)


def _repeat(run: RunRecord, runs: Sequence[RunRecord]) -> Part:
    note = "The same losses come out for any number of workers; choose a new folder."
    return Part(_heading(run, runs), note=note, code=command_of(run))


def command_of(run: RunRecord) -> str:
    """The command that trains the same again, from what the run was asked to do."""
    spec = run.spec
    options: dict[str, object] = {
        **spec.arguments, "epochs": spec.epochs, "batch_size": spec.batch_size,
        "learning_rate": spec.learning_rate, "seed": spec.seed, "checkpoint_seconds": spec.checkpoint_seconds,
        "keep": spec.keep,
    }  # fmt: skip
    workers = run.environment.get("workers")
    if isinstance(workers, int) and workers > 1:
        options["workers"] = workers
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return shlex.join(["qflock", "train", spec.what, *words, f"--run={run.store.url}-again"])


def _heading(run: RunRecord, runs: Sequence[RunRecord]) -> str:
    return run.label if len(runs) > 1 else ""


def _name(kind: str, number: int, runs: Sequence[RunRecord]) -> str:
    return f"{kind}-{number + 1}" if len(runs) > 1 else kind
