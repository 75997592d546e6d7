from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.training.commands import LINEAR, qflock

QCNN = ("train", "qcnn")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*QCNN, "--workers", 0), "`workers` must be at least 1, but is 0"),
        ((*QCNN, "--workers", 50000), "`workers` must fit into memory"),
        (
            (*QCNN, "--architecture", "hybird"),
            "hybrid, multi-filter, full, but is 'hybird'; did you mean 'hybrid'?",
        ),
        ((*QCNN, "--qubits", 3), "`qubits` must be at least 4, but is 3"),
        ((*QCNN, "--examples", 1), "`examples` must be at least 2"),
        ((*QCNN, "--epochs", 0), "`epochs` must be at least 1, but is 0"),
        ((*QCNN, "--learning-rate", "nan"), "`learning_rate` must be a finite number above 0, but is nan"),
        (("train", "qcn"), "must be 'qcnn' or 'path/to/file.py:name', but is 'qcn'"),
        (("train", "nowhere.py:x"), "but there is no such file"),
        (("train", f"{LINEAR}:experimen"), "did you mean 'experiment'?"),
    ],
)
def test_bad_arguments_are_named_on_one_line(
    tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    done = qflock(*arguments, "--run", tmp_path / "run")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1
    assert message in done.stderr


def test_a_used_run_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = qflock(*QCNN, "--run", tmp_path)
    assert (done.returncode, "must be a new or empty directory" in done.stderr) == (2, True)


def test_a_run_that_failed_at_once_may_be_made_anew(tmp_path: Path) -> None:
    wide = ("train", "qcnn", "--architecture", "full", "--qubits", 40)
    small = ("train", "qcnn", "--qubits", 4, "--examples", 4, "--epochs", 1)
    assert qflock(*wide, "--run", tmp_path).returncode == 2
    assert qflock(*small, "--run", tmp_path).returncode == 0
    again = qflock(*small, "--run", tmp_path)
    assert (again.returncode, "is already used" in again.stderr) == (2, True)


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        done = qflock(*QCNN, "--workers", 2, "--port", port - 1, "--run", tmp_path / "run")
    assert done.returncode == 2
    assert f"Port {port} must be free" in done.stderr


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "TF_CONFIG must be JSON"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"index": 1}}', "names worker 1 where there is 1 worker"),
        ('{"cluster": {"worker": ["a"]}, "task": {"index": 0}}', "'host:port', but has 'a'"),
    ],
)
def test_a_wrong_cluster_is_refused(tmp_path: Path, value: str, message: str) -> None:
    done = qflock(*QCNN, "--run", tmp_path / "run", TF_CONFIG=value)
    assert done.returncode == 2 and message in done.stderr


def test_runs_that_are_none(tmp_path: Path) -> None:
    for command in ("infer", "resume"):
        done = qflock(command, tmp_path / "none")
        assert (done.returncode, "must be a run of `qflock train`" in done.stderr) == (2, True)
    assert "no runs in" in qflock("runs", tmp_path).stdout
    blank = qflock("resume", "  ")
    assert (blank.returncode, "must be a folder or a URL" in blank.stderr) == (2, True)
