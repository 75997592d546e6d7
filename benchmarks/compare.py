"""All simulators side by side on the same inputs: answers that must agree, a table and a plot."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.ours import solve
from benchmarks.peers.environments import PEERS, Peer, interpreter, run_script
from benchmarks.peers.harness import Answer, load_answer, save_workload
from benchmarks.workloads import SIZES, Task, hybrid, to_workload
from qflock.engine.reductions import Reductions

EXPECTATION_TOLERANCE = 1e-5
GENERAL, REDUCED = "qflock, general path", "qflock, exact reductions"
# General path against the best peer: how many times faster at least.
RATIOS = {"8x32": 5, "8x1024": 15, "12x32": 25, "16x8": 15, "20x2": 15}


def compare(output: Path, peers: Sequence[Peer] = PEERS, dense: bool = False) -> None:
    """Runs every size and writes the table `output`.md and the plot `output`.svg."""
    for peer in peers:
        interpreter(peer)
    answers = {}
    for qubits, examples in SIZES:
        task = hybrid(qubits, examples, dense)
        answers[task.name] = _answers(task, peers)
        print(report.lines(task.name, answers[task.name]), flush=True)
    report.write_comparison(output, answers, RATIOS)


def _answers(task: Task, peers: Sequence[Peer]) -> list[Answer]:
    ours = [solve(task, Reductions.none(), GENERAL), solve(task, Reductions(), REDUCED)]
    _check(task, ours[0], ours[1], 1e-5)
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder) / f"{task.name}.npz"
        save_workload(to_workload(task), workload)
        for peer in peers:
            answer = Path(folder) / f"{peer.script}.json"
            run_script(peer, workload, answer)
            theirs = load_answer(answer)
            _check(task, ours[0], theirs, peer.gradient_tolerance)
            ours.append(theirs)
    return ours


def _check(task: Task, ours: Answer, theirs: Answer, gradient_tolerance: float) -> None:
    """A figure counts only where the numbers behind it are right."""
    value_error = float(np.abs(ours.expectations - theirs.expectations).max())
    scale = max(1.0, float(np.abs(ours.gradient).max()))
    gradient_error = float(np.abs(ours.gradient - theirs.gradient).max()) / scale
    if value_error > EXPECTATION_TOLERANCE or gradient_error > gradient_tolerance:
        sys.exit(
            f"{theirs.simulator} disagrees with {ours.simulator} at {task.name}: "
            f"expectations by {value_error:.1e}, gradient by {gradient_error:.1e} of its largest entry"
        )
