"""The command line with a job file, as a user starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from qflock.cli import main
from qflock.deploy.files import json_schema
from tests.deploy.api_server import State, api_server

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
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def job_file(folder: Path, store: str) -> str:
    path = folder / "qflock.toml"
    path.write_text(JOB.format(store=store))
    return str(path)


def test_the_same_job_trains_here(tmp_path: Path) -> None:
    done = qflock("train", "--job", job_file(tmp_path, str(tmp_path / "run")))
    assert done.returncode == 0, done.stderr
    assert qflock("infer", str(tmp_path / "run")).returncode == 0


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    """A server that the kubeconfig names."""
    with api_server() as (address, state):
        point_at(address, tmp_path, monkeypatch)
        yield state


def point_at(address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(folder / "kubeconfig")
    )
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """`qflock deploy` in this process: exit code, output, errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["qflock", "deploy", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return run


def test_render_prints_manifests_and_schema(tmp_path: Path, deploy) -> None:
    code, text, _ = deploy("render", job_file(tmp_path, "s3://bucket/tiny"))
    kinds = [each["kind"] for each in yaml.safe_load_all(text)]
    assert (code, kinds.count("Job")) == (0, 1)
    assert deploy("schema")[1] == json_schema()


def test_the_four_verbs(tmp_path: Path, cluster: State, deploy: Callable[..., tuple[int, str, str]]) -> None:
    path = job_file(tmp_path, "s3://bucket/tiny")
    code, text, _ = deploy("apply", path, "--dry-run")
    assert (code, cluster.objects) == (0, {})
    assert "Job tiny created (dry run)\n" in text
    code, text, _ = deploy("apply", path)
    assert code == 0
    assert "Job tiny created\n" in text
    assert len(cluster.objects) == len(text.splitlines())
    code, text, _ = deploy("delete", path)
    assert (code, cluster.objects) == (0, {})
    assert "Job tiny deleted\n" in text


LEAST = 'name = "tiny"\nstore = "gs://bucket/tiny"\n'
BAD = {
    "no DNS label": ('name = "Tiny_job"\nstore = "gs://bucket/tiny"', "key `name` is 'Tiny_job'"),
    "unknown kind": (LEAST + 'kind = "statefulset"', "key `kind` is 'statefulset'"),
    "no workers": (LEAST + "workers = 0", "key `workers` is 0"),
    "too many workers": (LEAST + "workers = 1001", "key `workers` is 1001"),
    "misspelt key": (LEAST + "wrokers = 2", "did you mean `workers`?"),
    "no store": ('name = "tiny"', "Key `store` must be a URL that every pod reaches"),
    "local store": ('name = "tiny"\nstore = "runs/tiny"', "a local folder ends with its pod"),
    "memory": (
        LEAST + '[experiment]\narchitecture = "full"\nqubits = 30',
        "Key `resources.memory` must be at least 17.1 GiB for 30 qubits, but is 4Gi",
    ),
}


@pytest.mark.parametrize("verb", ["render", "apply"])
@pytest.mark.parametrize("name", BAD)
def test_bad_jobs_reach_no_cluster(name: str, verb: str, tmp_path: Path, cluster: State, deploy) -> None:
    text, message = BAD[name]
    (tmp_path / "bad.toml").write_text(text)
    code, printed, errors = deploy(verb, str(tmp_path / "bad.toml"))
    assert (code, printed, cluster.requests) == (2, "", [])
    assert errors.startswith("error: ") and errors.count("\n") == 1
    assert message in errors


@pytest.mark.parametrize(("status", "message"), [(401, "log in again"), (403, "lacks a permission")])
def test_refused_credentials_leave_nothing_behind(
    status: int, message: str, tmp_path: Path, cluster: State, deploy
) -> None:
    cluster.faults["PATCH", "/"] = [status]
    code, printed, errors = deploy("apply", job_file(tmp_path, "gs://bucket/tiny"))
    assert (code, printed, cluster.objects) == (2, "", {})
    assert errors.count("\n") == 1
    assert message in errors


def test_a_missing_cluster_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deploy) -> None:
    point_at("http://127.0.0.1:9", tmp_path, monkeypatch)
    code, printed, errors = deploy("apply", job_file(tmp_path, "gs://bucket/tiny"))
    assert (code, printed) == (2, "")
    assert "the cluster does not answer" in errors and errors.count("\n") == 1
    (tmp_path / "kubeconfig").unlink()
    code, printed, errors = deploy("apply", job_file(tmp_path, "gs://bucket/tiny"))
    assert (code, printed) == (2, "")
    assert "A kubeconfig must name a cluster" in errors and errors.count("\n") == 1


def test_help_teaches(deploy) -> None:
    code, text, _ = deploy("render", "--help")
    words = " ".join(text.split())
    assert code == 0
    assert 'store = "gs://my-bucket/first"' in words
    assert "qflock deploy render qflock.toml --task infer" in words
