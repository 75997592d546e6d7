"""The same QCNN, data and optimiser in TensorFlow Quantum and qflock: loss, accuracy, time an epoch."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.peers.environments import TENSORFLOW_QUANTUM, run_script
from benchmarks.peers.harness import fit_and_score, save_workload
from benchmarks.workloads import Task, hybrid, to_workload

QUBITS, EXAMPLES = 8, 160
PLAN = {"split": 112, "epochs": 50, "batch_size": 32, "learning_rate": 0.02}
SEEDS = (0, 1, 2, 3)


def learning(output: Path) -> None:
    """Writes the table `output`.md."""
    task = hybrid(QUBITS, EXAMPLES)
    labels = np.where(np.abs(task.angles).max(axis=1) <= np.pi / 2, 1.0, -1.0)
    rows = []
    for name, results in (
        ("qflock", [_train(task, labels, seed) for seed in SEEDS]),
        (TENSORFLOW_QUANTUM.name, _train_peer(task, labels)),
    ):
        for seed, result in zip(SEEDS, results, strict=True):
            figures = (f"{result['loss']:.3f}", f"{result['accuracy']:.3f}", f"{1e3 * result['epoch']:.1f}")
            rows.append([name, str(seed), *figures])
            print(*rows[-1], flush=True)
    header = ["", "seed", "validation loss", "sign accuracy", "ms an epoch"]
    text = (
        f"Hybrid QCNN, {QUBITS} qubits, {EXAMPLES} examples, batch 32, Adam 0.02, 50 epochs, `model.fit`.\n"
    )
    report.write_page(output.with_suffix(".md"), "The same training", [text, report.table(header, rows)])


def _train(task: Task, labels: np.ndarray, seed: int) -> dict[str, float]:
    import keras

    from qflock.layers import convert_to_tensor
    from qflock.models.qcnn import qcnn

    keras.utils.set_random_seed(seed)
    data = convert_to_tensor(task.data_circuits)
    model = qcnn("hybrid", QUBITS)
    model.compile(optimizer=keras.optimizers.Adam(PLAN["learning_rate"]), loss="mse")
    return fit_and_score(keras, model, data, labels, PLAN)


def _train_peer(task: Task, labels: np.ndarray) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "task.npz"), Path(folder, "results.json")
        save_workload(to_workload(task), source)
        source.with_suffix(".json").write_text(
            json.dumps({**PLAN, "labels": labels.tolist(), "seeds": SEEDS})
        )
        run_script(TENSORFLOW_QUANTUM, source, target, "tfq_learning")
        return json.loads(target.read_text())
