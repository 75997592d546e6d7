"""The command: what it answers, what it refuses, and whether real trainings take as long as it says."""

from __future__ import annotations

import io
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from qflock.errors import ConfigurationError
from qflock.planning.picture import write_plan
from qflock.planning.plan import SCALE, Request, make_plan
from qflock.planning.show import print_plan
from qflock.training.spec import RunSpec
from tests.planning.figures import QCNN, made_plan
from tests.training.commands import LINEAR, command, environment, qflock, records


def plan(*arguments: object) -> dict[str, Any]:
    words = command("plan", *arguments, "--json", "--quiet")
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_tables_say_what_fits_and_what_never_ends() -> None:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as printed:
        print_plan(made_plan(), console)
    text = printed.get()
    assert (
        "one worker takes 512.0 MiB of 16.0 GiB that are free: fits; the widest that fits has 30 qubits"
        in text
    )
    assert "never" in text and "n2-standard-8" in text and "13.0 ms" in text


def test_page_holds_tables_and_plots(tmp_path: Path) -> None:
    where = Path(write_plan(made_plan(), str(tmp_path)))
    assert {path.name for path in tmp_path.iterdir()} == {
        "plan.html", "plan.json", "scaling-step.png", "scaling-rate.png", "qubits.png"
    }  # fmt: skip
    assert where.read_text().count("<img") == 3 and "1 to 1000 workers" in where.read_text()
    assert json.loads((tmp_path / "plan.json").read_text())["scaling"][-1]["total"] is None


def test_an_experiment_without_circuits_is_planned_too() -> None:
    answer = plan(f"{LINEAR}:experiment", "--seconds", 0.5, "--epochs", 3, "--price-per-hour", 7.2)
    assert answer["training"]["train"] == 112 and answer["training"]["qubits"] == []
    assert [f["workers"] for f in answer["scaling"]] == list(SCALE)
    one, two = answer["here"]
    assert 0 < one["step"] == one["framework"] and two["communication"] > 0 and one["kernel"] == 0
    for offer in answer["offers"]:
        assert offer["fits"] and offer["dollars"] == pytest.approx(
            7.2 * 2 * offer["forecast"]["total"] / 3600
        )
    assert 1 << 28 < answer["memory_here"][0] < answer["memory_here"][1]
    assert answer["chart"] == [] and answer["largest_here"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "`workers` must be at least 1, but is 0"),
        ({"node_types": ()}, "--node-type must be given at least once"),
        (
            {"node_types": ("abacus-3",)},
            "must be a standard type, such as c3-standard-8, .*, but is 'abacus-3'",
        ),
        ({"region": "mars"}, "--region must be one of europe-west1, .*, but is 'mars'"),
        (
            {"network_latency": float("nan")},
            "`network_latency` must be a finite number of at least 0, but is nan",
        ),
        ({"seconds": 0.0}, "`seconds` must be between 0.5 and 600, but is 0"),
    ],
)
def test_bad_requests_are_refused_before_measuring(change: dict[str, Any], message: str) -> None:
    def measuring(text: str) -> None:
        pytest.fail("measured before looking at the request")

    with pytest.raises(ConfigurationError, match=message):
        make_plan(Request(RunSpec("qcnn", QCNN), **change), measuring)


def test_a_training_that_fails_is_not_planned(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(LINEAR.read_text().replace("keras.layers.Dense(1)", "keras.layers.Dense(-1)"))
    done = qflock("plan", f"{broken}:experiment", "--quiet")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "must run to be measured, but it failed: ValueError" in done.stderr and "units" in done.stderr


def epoch_seconds(run: Path) -> float:
    """Of a usual epoch; the first one also compiles circuits."""
    return statistics.median(r["seconds"] for r in records(run, "epoch")[1:])


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("qubits", [8, 12])
def test_real_trainings_take_as_long_as_planned(tmp_path: Path, qubits: int) -> None:
    size = ("--qubits", qubits, "--examples", 320, "--epochs", 40)
    answer = plan(*size)
    for forecast in answer["here"]:
        run = tmp_path / str(forecast["workers"])
        trained = qflock("train", "qcnn", *size, "--workers", forecast["workers"], "--quiet", "--run", run)
        assert trained.returncode == 0, trained.stderr
        took = epoch_seconds(run)
        print(
            f"{qubits} qubits, {forecast['workers']} workers: planned {forecast['epoch']:.4f} s, took {took:.4f} s"
        )
        assert forecast["epoch"] == pytest.approx(took, rel=0.25)
