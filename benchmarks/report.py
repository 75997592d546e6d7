"""Tables in Markdown and plots in SVG, for docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.harness import Answer, Timing

# Before the first measurement: what other programs were doing then.
LOAD = os.getloadavg()[0]

# Colours that stay apart for colour-blind readers (Okabe and Ito), with a marker each for print.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#56B4E9", "v"))


def milliseconds(timing: Timing) -> str:
    """Median and quartiles."""
    low, median, high = (1e3 * value for value in (timing.low, timing.median, timing.high))
    digits = 2 if median < 10 else 1 if median < 100 else 0
    return f"{median:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def processor() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{names[0].partition(': ')[2] if names else platform.machine()}, {len(names)} cores"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def lines(name: str, answers: Sequence[Answer]) -> str:
    rows = [
        f"  {a.simulator:28}{milliseconds(a.timing):>28} ms  first {a.timing.first:.1f} s" for a in answers
    ]
    return "\n".join([name, *rows])


def write_page(path: Path, title: str, sections: Sequence[str]) -> None:
    """A page of the documentation; says on what it was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(
            [f"# {title}\n", f"Measured on: {processor()}; load average before: {LOAD:.1f}.\n", *sections]
        )
    )


def write_comparison(
    output: Path, answers: Mapping[str, Sequence[Answer]], ratios: Mapping[str, int]
) -> None:
    simulators = [answer.simulator for answer in next(iter(answers.values()))]
    versions = [f"{answer.simulator} {answer.version}" for answer in next(iter(answers.values()))]
    sections = [
        f"Versions: {'; '.join(versions)}. Milliseconds, median (quartiles). All answers agree.\n",
        f"![Value and gradient]({output.name}.svg)\n",
        "## Kernels only: expectation values\n",
        table(["qubits x batch", *simulators], _rows(answers, "forward")),
        "## With differentiation: value and gradient of the loss\n",
        table(["qubits x batch", *simulators], _rows(answers, "timing")),
        "The general path against the best peer:\n",
        table(["qubits x batch", "times faster", "target"], _ratio_rows(answers, ratios)),
        "## Seconds of the first call, which compiles\n",
        table(
            ["qubits x batch", *simulators],
            [[name, *(f"{a.timing.first:.2f}" for a in row)] for name, row in answers.items()],
        ),
    ]
    write_page(output.with_suffix(".md"), "Side by side with other simulators", sections)
    sizes = list(answers)
    series = {
        simulator: (sizes, [1e3 * answers[size][index].timing.median for size in sizes])
        for index, simulator in enumerate(simulators)
    }
    plot(output.with_suffix(".svg"), "Value and gradient of the hybrid QCNN", "qubits x batch", series)


def _rows(answers: Mapping[str, Sequence[Answer]], field: str) -> list[list[str]]:
    return [[name, *(milliseconds(getattr(a, field)) for a in row)] for name, row in answers.items()]


def _ratio_rows(answers: Mapping[str, Sequence[Answer]], ratios: Mapping[str, int]) -> list[list[str]]:
    rows = []
    for name, (general, _, *peers) in answers.items():
        best = min(peer.timing.median for peer in peers)
        rows.append([name, f"{best / general.timing.median:.1f}", str(ratios[name])])
    return rows


def plot(
    path: Path, title: str, x_label: str, series: Mapping[str, tuple[Sequence[Any], Sequence[float]]]
) -> None:
    """Lines over a logarithmic axis of milliseconds."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "qflock"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (name, (x, y)), (colour, marker) in zip(series.items(), STYLES, strict=False):
        axes.plot(x, y, color=colour, marker=marker, label=name)
    axes.set(title=title, xlabel=x_label, ylabel="milliseconds", yscale="log")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
