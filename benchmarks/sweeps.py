"""How our own cost grows: with qubits, batch, gates and threads, and on data where reductions cannot help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import cirq

from benchmarks import report
from benchmarks.ours import gradient_time
from benchmarks.workloads import Task, hybrid
from qflock.engine.processor import thread_count
from qflock.engine.reductions import Reductions
from qflock.models.qcnn import level

SWITCHES = {
    "general path": Reductions.none(),
    "cone": Reductions(split=False, dedupe=False, prefix=False),
    "cone, split": Reductions(dedupe=False, prefix=False),
    "cone, split, dedupe": Reductions(prefix=False),
    "all": Reductions(),
}


def sweep(output: Path) -> None:
    """Writes the page `output`.md and its plots."""
    bare, reduced = SWITCHES["general path"], SWITCHES["all"]
    sections = [
        "Value and gradient, milliseconds, median (quartiles).\n",
        "## Qubits (8 examples)\n",
        _growth(output, "qubits", range(4, 23, 2), lambda n: hybrid(n, 8), bare, reduced),
        "## Examples (10 qubits)\n",
        _growth(output, "examples", (1, 4, 16, 64, 256, 1024), lambda b: hybrid(10, b), bare, reduced),
        "## Gates (12 qubits, 8 examples; layers of convolution and pooling)\n",
        _growth(output, "layers", (1, 2, 4, 8, 16), lambda k: layered(12, 8, k), bare, reduced),
        "## Threads (general path)\n",
        _threads(),
        "## Reductions, one by one\n",
        "With an angle of its own on every qubit of every example, nothing repeats.\n",
        _dense(),
    ]
    report.write_page(output.with_suffix(".md"), "How the cost grows", sections)


def layered(qubits: int, examples: int, layers: int) -> Task:
    """The hybrid circuit with its convolution and pooling repeated, each time with symbols of its own."""
    line = cirq.GridQubit.rect(1, qubits)
    model = cirq.Circuit()
    for index in range(layers):
        model += level(line, f"layer{index}")[0]
    return replace(hybrid(qubits, examples), model=model, name=f"{qubits}x{examples} {layers} layers")


def _growth(
    output: Path, what: str, steps: Iterable[int], task: Callable[[int], Task], *switches: Reductions
) -> str:
    names = [name for name, value in SWITCHES.items() if value in switches]
    times = {
        step: [gradient_time(task(step), SWITCHES[name], seconds=1.0) for name in names] for step in steps
    }
    print(f"swept {what}", flush=True)
    series = {
        name: ([str(step) for step in times], [1e3 * row[index].median for row in times.values()])
        for index, name in enumerate(names)
    }
    image = output.with_name(f"{output.name}-{what}.svg")
    report.plot(image, f"Cost against {what}", what, series)
    rows = [[str(step), *map(report.milliseconds, row)] for step, row in times.items()]
    return f"![Cost against {what}]({image.name})\n\n{report.table([what, *names], rows)}"


def _threads() -> str:
    rows = []
    for task in (hybrid(8, 1024), hybrid(12, 32), hybrid(16, 8), hybrid(20, 2)):
        times = [gradient_time(task, SWITCHES["general path"], count, 1.0) for count in _thread_counts()]
        speedups = [f"{times[0].median / timing.median:.2f}" for timing in times]
        rows.append([task.name, *speedups])
    print("swept threads", flush=True)
    return report.table(["speed-up by threads", *map(str, _thread_counts())], rows)


def _thread_counts() -> list[int]:
    counts = [1]
    while counts[-1] * 2 <= thread_count():
        counts.append(counts[-1] * 2)
    return counts


def _dense() -> str:
    """An Rx of its own on every qubit of every example: nothing repeats, nothing can be shared."""
    tasks = {"one Rx": hybrid(12, 32), "dense angles": hybrid(12, 32, dense=True)}
    rows = [
        [name, *(report.milliseconds(gradient_time(task, switch, seconds=1.0)) for task in tasks.values())]
        for name, switch in SWITCHES.items()
    ]
    print("swept reductions", flush=True)
    return report.table(["12 qubits, 32 examples", *tasks], rows)
