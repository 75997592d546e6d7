"""What `make demo` runs: two workers train a QCNN, then a new process predicts with the stored weights.

The mean squared error of the predictions must equal the last validation loss of the training.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

TOLERANCE = 1e-6
TRAIN = "qflock train qcnn --workers 2 --qubits 8 --examples 160 --epochs 50 --batch-size 32 --run"


def main() -> int:
    """Trains into a new run and compares; 0 if the figures agree."""
    run = Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")
    trained = seconds_of([*TRAIN.split(), str(run)])
    predicted = seconds_of(["qflock", "infer", str(run)])
    error, loss = error_of_predictions(run), last_validation_loss(run)
    agree = abs(error - loss) <= TOLERANCE
    print(f"run {run}: training {trained:.1f} s, inference {predicted:.1f} s, start of the workers included")
    verdict = "equal" if agree else "NOT EQUAL"
    print(f"mean squared error {error:.8f}, last validation loss {loss:.8f}: {verdict}")
    return 0 if agree else 1


def seconds_of(command: list[str]) -> float:
    """Runs a command; ends with its code where it fails."""
    print("$", *command, flush=True)
    start = time.perf_counter()
    code = subprocess.run(command).returncode
    if code:
        sys.exit(code)
    return time.perf_counter() - start


def error_of_predictions(run: Path) -> float:
    """Mean squared error over the rows of `predictions.csv`."""
    with (run / "predictions.csv").open(newline="") as file:
        errors = [(float(row["prediction"]) - float(row["label"])) ** 2 for row in csv.DictReader(file)]
    return sum(errors) / len(errors)


def last_validation_loss(run: Path) -> float:
    """From the log of metrics, one JSON object a line."""
    records = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return float([record["val_loss"] for record in records if record["kind"] == "epoch"][-1])


if __name__ == "__main__":
    sys.exit(main())
