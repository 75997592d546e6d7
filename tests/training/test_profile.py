"""Profiles of two real workers: a range of steps, samples while they train, and what goes wrong."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from xprof.convert.raw_to_tool_data import xspace_to_tool_data

from qflock.cli.app import app
from qflock.cluster.ports import free_ports
from qflock.cluster.profiling import capture
from qflock.errors import ConfigurationError, QflockError, RunError
from qflock.training.mirror import Mirror
from qflock.training.run import claim, write_status
from qflock.training.spec import RunSpec
from qflock.training.step_profile import StepProfile
from qflock.training.step_range import StepRange
from qflock.training.store import Store
from tests.training.commands import start

SESSIONS = Path("tensorboard/plugins/profile")
ENDLESS = ("train", "qcnn", "--qubits", 4, "--examples", 16, "--epochs", 10**6, "--json")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two workers that train until the tests are done, and record steps 3 to 5."""
    run = tmp_path_factory.mktemp("profile") / "run"
    process = start(*ENDLESS, "--workers", 2, "--profile", "3,5", "--run", run)
    end = time.monotonic() + 120
    while len(list((run / SESSIONS / "steps-3-5").glob("worker-[01].xplane.pb"))) < 2:
        assert process.poll() is None and time.monotonic() < end, process.output()
        time.sleep(0.1)
    yield run
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143, process.output()
    printed = [json.loads(line) for line in process.output().splitlines() if line.startswith("{")]
    assert {line["event"] for line in printed} - {"busy"} == {"epoch", "checkpoint"}
    assert printed[0]["alive"] == printed[0]["workers"] == 2
    assert printed[-1]["event"] == "checkpoint"


def traced(file: Path) -> list[dict[str, Any]]:
    """What the trace viewer draws."""
    data, _ = xspace_to_tool_data([str(file)], "trace_viewer", {})
    return [e for e in json.loads(data)["traceEvents"] if e.get("ph") == "X"]


@pytest.mark.parametrize("worker", [0, 1])
def test_steps_and_the_engines_work_are_named(training: Path, worker: int) -> None:
    events = traced(training / SESSIONS / "steps-3-5" / f"worker-{worker}.xplane.pb")
    names = {e["name"] for e in events}
    assert {"train 3", "train 4", "train 5"} <= names and "train 6" not in names
    assert {"qflock.forward", "qflock.backward", "qflock.wait for peers"} <= names
    details = [e["args"] for e in events if e["name"] == "qflock.backward"]
    assert all(d["qubits"] == "4" and int(d["batch"]) > 0 and int(d["threads"]) > 0 for d in details)


def test_a_capture_takes_all_workers_and_names_those_that_are_gone(training: Path, tmp_path: Path) -> None:
    store = Store(str(training))
    captured = capture(store, 1.0)
    assert set(captured.sizes) == {0, 1} and not captured.silent
    for worker in (0, 1):
        names = {
            e["name"] for e in traced(training / SESSIONS / captured.session / f"worker-{worker}.xplane.pb")
        }
        assert "qflock.forward" in names
    # The same run, as if worker 1 had gone without anybody noticing yet, and then worker 0 too.
    addresses = {w: json.loads((training / "profiler" / f"worker-{w}.json").read_text()) for w in (0, 1)}
    gone, other = (f"localhost:{port}" for port in free_ports(2))
    copy = Store(str(tmp_path / "copy"))
    claim(copy, RunSpec("own.py:x"), join=False)
    write_status(copy, "running", 0, None)
    copy.write("profiler/worker-0.json", json.dumps(addresses[0]).encode())
    copy.write("profiler/worker-1.json", json.dumps(addresses[1] | {"address": gone}).encode())
    result = CliRunner().invoke(app, ["profile", copy.url, "--duration", "500ms"])
    assert result.exit_code == 0 and f"worker 1  no answer from {gone}" in result.output
    assert "worker 0  " in result.stdout
    copy.write("profiler/worker-0.json", json.dumps(addresses[0] | {"address": other}).encode())
    before = copy.list(str(SESSIONS))
    with pytest.raises(RunError, match=rf"Nothing was captured.*worker 0 \({other}\), worker 1 \({gone}\)"):
        capture(copy, 0.1)
    assert copy.list(str(SESSIONS)) == before


def _refused(*arguments: object) -> QflockError:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, QflockError), result.output
    return result.exception


def test_runs_that_cannot_be_profiled_or_shown(tmp_path: Path) -> None:
    for verb in ("profile", "tensorboard"):
        assert "holds no run.json" in str(_refused(verb, tmp_path / "nowhere"))
    store = Store(str(tmp_path / "run"))
    claim(store, RunSpec("own.py:x"), join=False)
    assert "names no profiler address yet" in str(_refused("profile", store.url))
    write_status(store, "finished", 10, 0.5)
    assert "must be running to be profiled, but is finished" in str(_refused("profile", store.url))
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} must be free" in str(_refused("tensorboard", store.url, "--port", port))


@pytest.mark.parametrize("text", ["", "2h", "0s", "-1s", "11min", "nans"])
def test_durations_that_make_no_sense(tmp_path: Path, text: str) -> None:
    assert "1ms to 10min" in str(_refused("profile", tmp_path, "--duration", text))


@pytest.mark.parametrize("text", ["3", "5,3", "0,4", "a,b", "1,2,3"])
def test_step_ranges_that_make_no_sense(tmp_path: Path, text: str) -> None:
    error = _refused("train", "qcnn", "--profile", text, "--run", tmp_path / "run")
    assert "must be FIRST,LAST" in str(error) and not (tmp_path / "run").exists()


def test_quiet_and_json_exclude_each_other(tmp_path: Path) -> None:
    error = _refused("train", "qcnn", "--quiet", "--json", "--run", tmp_path / "run")
    assert isinstance(error, ConfigurationError)


def test_a_range_beyond_the_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one of the 2 steps of this training, but begins at 3"):
        StepProfile(StepRange(3, 9), Store(str(tmp_path)), 0, total=2)


def test_a_mirror_follows_a_bucket(tmp_path: Path) -> None:
    store, mirror = Store("memory://mirror-test/run"), Mirror(Store("memory://mirror-test/run"), tmp_path)
    store.write("tensorboard/events.out.tfevents.1", b"one")
    mirror.update()
    opened = (tmp_path / "events.out.tfevents.1").open("rb")
    assert opened.read() == b"one"
    store.write("tensorboard/events.out.tfevents.1", b"one, two")
    store.write("tensorboard/plugins/profile/steps-1-2/worker-0.xplane.pb", b"profile")
    mirror.update()
    assert opened.read() == b", two"
    assert (tmp_path / "plugins/profile/steps-1-2/worker-0.xplane.pb").read_bytes() == b"profile"
    store.write("tensorboard/events.out.tfevents.1", b"one, two, three")
    store.write("tensorboard/events.out.tfevents.2", b"resumed")
    mirror.update()
    assert opened.read() == b", three"
    store.delete("tensorboard/events.out.tfevents.1")
    mirror.update()
    assert [file.name for file in tmp_path.glob("events*")] == ["events.out.tfevents.2"]
