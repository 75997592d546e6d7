"""The command line with a job file, as a user starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from qflock.deploy.files import json_schema

JOB = """
name = "tiny"
store = "{store}"
workers = 2
[experiment]
qubits = 4
examples = 16
epochs = 2
batch_size = 8
"""


def qflock(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qflock.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def job_file(folder: Path, store: str) -> str:
    path = folder / "qflock.toml"
    path.write_text(JOB.format(store=store))
    return str(path)


def test_the_same_job_trains_here(tmp_path: Path) -> None:
    done = qflock("train", "--job", job_file(tmp_path, str(tmp_path / "run")))
    assert done.returncode == 0, done.stderr
    assert qflock("infer", str(tmp_path / "run")).returncode == 0


def test_render_prints_manifests_and_schema(tmp_path: Path) -> None:
    done = qflock("deploy", "render", job_file(tmp_path, "s3://bucket/tiny"))
    assert done.returncode == 0, done.stderr
    kinds = [each["kind"] for each in yaml.safe_load_all(done.stdout)]
    assert kinds.count("Job") == 1
    assert qflock("deploy", "schema").stdout == json_schema()


def test_bad_jobs_leave_with_2_and_one_line(tmp_path: Path) -> None:
    done = qflock("deploy", "render", job_file(tmp_path, "runs/local"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: Key `store`")
    assert done.stderr.count("\n") == 1
