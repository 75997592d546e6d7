"""The page of a run: what it shows, that nothing in it comes from elsewhere, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from qflock.errors import ConfigurationError, RunError
from qflock.reports.reading import read_runs
from qflock.reports.readouts import read_readouts
from qflock.reports.report import command_of, write_report
from qflock.training.store import Store
from tests.reports.made_run import make_run, write_readouts
from tests.training.commands import LINEAR, qflock

PNG = b"\x89PNG"
HOSTILE = "<script>alert(1)</script>\"'&$x_{"


class Tags(HTMLParser):
    """All elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_at(where: str) -> str:
    return Path(where).read_text()


@pytest.fixture(scope="module")
def full_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("report") / "first"
    paces = [{"step_seconds/quantum": time, "step_seconds/total": 0.3} for time in (0.1, 0.3)]
    make_run(run, extra={"circuits_per_second/all": 40.0}, paces=paces)
    write_readouts(run)
    return Path(write_report([str(run)]))


def test_page_holds_every_section_and_needs_nothing_else(full_page: Path) -> None:
    tags = Tags(full_page.read_text())
    for title in (
        "Training curves",
        "Predictions against labels",
        "Quantum readouts",
        "Circuits",
        "Where time went",
    ):
        assert title in tags.text
    assert "mean squared error 0.607500, accuracy of the sign 0.6667" in tags.text
    assert "step seconds/quantum" in tags.text and "circuits per second/all" in tags.text
    assert "numpy" in tags.text and "No " not in tags.text
    sources = [attributes.get("src") or attributes.get("href") for _, attributes in tags.found]
    assert all(source.startswith("data:") for source in sources if source)
    assert not re.findall(r"(?:https?:)?//", re.sub(r"base64,[^\"]*", "", full_page.read_text()))
    assert all(attributes["alt"] for tag, attributes in tags.found if tag == "img")


def test_each_plot_lies_beside_the_page(full_page: Path) -> None:
    pictures = {path.stem: path.read_bytes() for path in full_page.parent.glob("*.png")}
    names = {"loss-by-step", "curve-loss", "predictions", "readouts", "circuit", "circuit-data", "times"}
    assert names - {"circuit-data"} <= set(pictures)
    assert all(content.startswith(PNG) for content in pictures.values())
    assert full_page.read_text().count("<img") == len(pictures)


def test_readouts_come_back_from_the_event_files(tmp_path: Path) -> None:
    store = make_run(tmp_path / "run")
    write_readouts(tmp_path / "run")
    first, second = read_readouts(store)
    assert (first.name, second.name) == ("readouts/filter0/0", "readouts/filter0/1")
    np.testing.assert_array_equal(first.steps, [2, 4, 6])
    wanted = np.outer([1, 1 / 2, 1 / 3], [-0.9, -0.5, 0, 0.5, 0.9])
    np.testing.assert_allclose(first.quantiles, wanted, atol=0.05)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    run = tmp_path / "_<img src=x onerror=alert(1)>$y_{"
    store = make_run(run, extra={HOSTILE: 1.0, f"val_{HOSTILE}": float("nan"), "_under": 2.0})
    environment = json.loads(store.read("environment.json")) | {"versions": {HOSTILE: HOSTILE}}
    store.write("environment.json", json.dumps(environment).encode())
    page = page_at(write_report([str(run)], str(tmp_path / "page")))
    tags = Tags(page)
    assert HOSTILE in tags.text and run.name in tags.text
    assert "script" not in {tag for tag, _ in tags.found}
    assert not [key for _, attributes in tags.found for key in attributes if key.startswith("on")]


def test_several_runs_share_the_curves(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / name)
    where = write_report([str(tmp_path / name) for name in "ab"], "memory://reports/page")
    page = Store("memory://reports/page").read("compare.html").decode()
    assert where == "memory://reports/page/compare.html"
    assert "2 runs: a, b" in page and "The same as those of a." in page
    with pytest.raises(ConfigurationError, match="must be named once"):
        write_report([str(tmp_path / "a"), f"{tmp_path / 'a'}/"])


def test_a_run_in_a_store_is_reported_there() -> None:
    make_run("memory://bucket/run")
    assert write_report(["memory://bucket/run"]) == "memory://bucket/run/report/report.html"
    assert {"report.html", "curve-loss.png"} <= set(Store("memory://bucket/run/report").list(""))


def test_unreadable_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    store = make_run(tmp_path / "run")
    whole = store.read("metrics.jsonl")
    store.write("metrics.jsonl", b'[1]\n{"kind": "other", "step": 1}\n' + whole + b'{"kind": "epoch", "epo')
    assert "run: 2." in page_at(write_report([str(tmp_path / "run")]))
    (run,) = read_runs([str(tmp_path / "run")])
    assert (len(run.steps), len(run.epochs)) == (6, 3)


def test_paces_of_the_workers_belong_to_their_epochs(tmp_path: Path) -> None:
    store = make_run(tmp_path / "run")
    paces = [
        {
            "kind": "pace",
            "epoch": 2,
            "step": 4,
            "worker": w,
            "circuits_per_second": 9.0 + w,
            "step_seconds/input": 0.1 + w,
        }
        for w in (0, 1)
    ]
    lines = "".join(json.dumps(pace) + "\n" for pace in paces).encode()
    store.write("metrics.jsonl", store.read("metrics.jsonl") + lines)
    (run,) = read_runs([store.url])
    assert run.unreadable == 0
    second = {k: v for k, v in run.epochs[1].items() if "/" in k}
    assert second == {
        "circuits_per_second/worker 0": 9.0, "circuits_per_second/worker 1": 10.0, "step_seconds/input": 0.1
    }  # fmt: skip


def test_command_repeats_the_run(tmp_path: Path) -> None:
    make_run(tmp_path / "it's", epochs=4)
    (run,) = read_runs([str(tmp_path / "it's")])
    script = (
        f'qflock() {{ "{sys.executable}" -c "import sys, json; print(json.dumps(sys.argv[1:]))" "$@"; }}\n'
    )
    done = subprocess.run(
        ["bash", "-c", script + command_of(run)], capture_output=True, text=True, check=True
    )
    arguments = json.loads(done.stdout)
    assert arguments[:2] == ["train", "qcnn"] and arguments[-1] == f"--run={tmp_path}/it's-again"
    assert {
        "--architecture=hybrid",
        "--qubits=4",
        "--examples=20",
        "--epochs=4",
        "--batch-size=7",
        "--workers=2",
    } < set(arguments)


def test_own_model_is_not_executed_without_a_word(tmp_path: Path) -> None:
    store = make_run(tmp_path / "run", what="/nowhere/mine.py:experiment")
    store.delete("predictions.csv")
    page = Tags(page_at(write_report([str(tmp_path / "run")]))).text
    assert page.count("add --experiment /nowhere/mine.py:experiment") == 2


def test_bad_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="must be a run of `qflock train`"):
        write_report([str(tmp_path / "none")])
    store = make_run(tmp_path / "empty")
    store.delete("metrics.jsonl")
    with pytest.raises(RunError, match=r"has none in metrics\.jsonl yet \(it is finished at step 6\)"):
        write_report([store.url])
    store = make_run(tmp_path / "newer")
    store.write("run.json", store.read("run.json").replace(b'"format": 1', b'"format": 99'))
    with pytest.raises(RunError, match="has 99: it needs another version of qflock"):
        write_report([store.url])
    make_run(tmp_path / "torn").write("predictions.csv", b"prediction\nx\n")
    assert "write it anew" in page_at(write_report([str(tmp_path / "torn")]))


def test_missing_package_is_named_with_its_fix(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    program = (
        "import sys; sys.modules['jinja2'] = None; from qflock.cli import main; "
        f"sys.argv = ['qflock', 'report', {str(tmp_path / 'run')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'qflock[report]'" in done.stderr


def test_a_real_run_is_reported_by_the_command(tmp_path: Path) -> None:
    run, what = tmp_path / "run", f"{LINEAR}:experiment"
    trained = qflock("train", what, "--epochs", 2, "--run", run)
    assert trained.returncode == 0, trained.stderr
    done = qflock("report", run, "--experiment", what)
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", f"{run}/report/report.html")
    text = Tags(page_at(done.stdout.strip())).text
    assert "48 values" in text and "The model has no circuits." in text and "cirq-core" in text
