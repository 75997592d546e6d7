"""`apply`, `status`, `logs` and `delete` against a server that answers as a cluster's does."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from kubernetes import client

from qflock.deploy.cluster import Cluster, ClusterError, address, apply, connect, delete
from qflock.deploy.pods import labels
from qflock.deploy.render import manifests
from qflock.deploy.watch import log_lines, progress, workers
from qflock.errors import ConfigurationError
from qflock.training.run import write_status
from qflock.training.store import Store
from tests.deploy.api_server import CLOSE, SILENCE, State, api_server
from tests.deploy.jobs import JOBS, PLAIN

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def connection() -> Iterator[tuple[Cluster, State]]:
    with api_server() as (host, state):
        settings = client.Configuration(host=host)
        settings.retries = False
        with client.ApiClient(settings) as api:
            yield Cluster(api, pause=lambda seconds: None), state


def verbs(changes) -> set[str]:
    return {change.verb for change in changes}


@pytest.mark.parametrize("name", JOBS)
def test_apply_creates_then_finds_nothing_to_change_then_delete_removes_all(name, connection) -> None:
    cluster, state = connection
    objects = manifests(JOBS[name])
    assert verbs(apply(cluster, objects)) == {"created"}
    assert set(state.objects) == {address(each) for each in objects}
    assert verbs(apply(cluster, objects)) == {"unchanged"}
    assert len(list(delete(cluster, JOBS[name]))) == len(objects)
    assert state.objects == {}


def test_a_changed_job_is_configured(connection) -> None:
    cluster, _ = connection
    apply(cluster, manifests(PLAIN))
    changed = manifests(PLAIN.model_copy(update={"workers": 4}))
    assert [c.name for c in apply(cluster, changed) if c.verb == "configured"] == ["first"]


def test_dry_runs_change_nothing(connection) -> None:
    cluster, state = connection
    assert verbs(apply(cluster, manifests(PLAIN), dry_run=True)) == {"created"}
    assert state.objects == {}
    apply(cluster, manifests(PLAIN))
    before = dict(state.objects)
    list(delete(cluster, PLAIN, dry_run=True))
    assert state.objects == before


def test_objects_of_others_are_neither_overwritten_nor_deleted(connection) -> None:
    cluster, state = connection
    service = "/api/v1/namespaces/default/services/first"
    other = {"kind": "Service", "metadata": {"name": "first", "labels": {"app": "theirs"}}}
    state.objects[service] = other
    with pytest.raises(ClusterError, match="belongs to others"):
        apply(cluster, manifests(PLAIN))
    list(delete(cluster, PLAIN))
    assert state.objects == {service: other}


@pytest.mark.parametrize("rehearsed", [False, True])
@pytest.mark.parametrize("status", [401, 403, 404, 409, 422])
def test_a_refusal_is_one_line_and_leaves_nothing_behind(status, rehearsed, connection) -> None:
    cluster, state = connection
    state.faults["PATCH", "/jobs/"] = [0, status] if rehearsed else [status]
    with pytest.raises(ClusterError) as error:
        apply(cluster, manifests(PLAIN))
    assert "\n" not in str(error.value)
    assert state.objects == {}


def test_a_refused_change_leaves_what_there_was(connection) -> None:
    cluster, state = connection
    apply(cluster, manifests(PLAIN))
    before = copy.deepcopy(state.objects)
    state.faults["PATCH", "/jobs/"] = [422]
    with pytest.raises(ClusterError, match="refuses the object"):
        apply(cluster, manifests(PLAIN.model_copy(update={"port": 2300})))
    assert state.objects == before


def test_an_interrupt_leaves_nothing_behind(connection) -> None:
    cluster, state = connection

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    state.faults["PATCH", "/jobs/"] = [0, 503]
    with pytest.raises(KeyboardInterrupt):
        apply(Cluster(cluster.client, pause=interrupt), manifests(PLAIN))
    assert state.objects == {}


def test_what_cannot_be_taken_back_is_named(connection) -> None:
    cluster, state = connection
    state.faults["PATCH", "/jobs/"] = [0, 403]
    state.faults["DELETE", "/services/first-tensorboard"] = [403]
    with pytest.raises(ClusterError, match="left behind: Service first-tensorboard; run `qflock deploy del"):
        apply(cluster, manifests(PLAIN))
    assert set(state.objects) == {"/api/v1/namespaces/default/services/first-tensorboard"}


@pytest.mark.parametrize("fault", [429, 500, 503, CLOSE, SILENCE])
def test_passing_faults_are_tried_again(fault, connection, monkeypatch) -> None:
    cluster, state = connection
    if fault == SILENCE:
        monkeypatch.setattr("qflock.deploy.cluster.TIMEOUT_SECONDS", 0.2)
    state.faults["PATCH", "/services/"] = [fault, fault]
    assert verbs(apply(cluster, manifests(PLAIN))) == {"created"}


def test_lasting_faults_end_with_a_reason(connection) -> None:
    cluster, state = connection
    state.faults["GET", "serviceaccounts"] = [429] * 99
    with pytest.raises(ClusterError, match="overloaded"):
        apply(cluster, manifests(PLAIN))


def test_a_cluster_that_is_not_there_is_named() -> None:
    settings = client.Configuration(host="http://127.0.0.1:9")
    settings.retries = False
    with client.ApiClient(settings) as api, pytest.raises(ClusterError, match="does not answer"):
        apply(Cluster(api, pause=lambda seconds: None), manifests(PLAIN))


def test_missing_configuration_is_one_line(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match="kubeconfig"):
        connect()


@pytest.mark.parametrize("text", ["", "{", "apiVersion: v1\nkind: Config\ncurrent-context: none\n"])
def test_a_broken_configuration_is_one_line(text: str, monkeypatch, tmp_path) -> None:
    (tmp_path / "config").write_text(text)
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config")
    )
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match=r"must name a cluster, but: .*get-contexts") as error:
        connect()
    assert "\n" not in str(error.value)


def pod(index: int, name: str, created: str, phase: str) -> dict:
    marks = labels(PLAIN, "worker") | {"batch.kubernetes.io/job-completion-index": str(index)}
    about = {"name": name, "labels": marks, "creationTimestamp": created}
    return {"metadata": about, "status": {"phase": phase}}


def test_status_and_logs_follow_the_newest_pod(connection) -> None:
    cluster, state = connection
    for index, name, created, phase in [
        (0, "first-0-a", "2026-01-01T00:00:00Z", "Failed"),
        (0, "first-0-b", "2026-01-01T00:01:00Z", "Running"),
        (1, "first-1-a", "2026-01-01T00:00:00Z", "Pending"),
    ]:
        state.objects[f"{PODS}/{name}"] = pod(index, name, created, phase)
    state.logs[f"{PODS}/first-0-b/log"] = "epoch 1\nepoch 2\nlast"
    lines = [each.line() for each in workers(cluster, PLAIN)]
    assert lines == ["worker 0  Running  replaced 1", "worker 1  Pending  replaced 0"]
    assert list(log_lines(cluster, PLAIN, 0, follow=True)) == ["epoch 1", "epoch 2", "last"]
    with pytest.raises(ClusterError, match="workers with a pod: 0, 1"):
        list(log_lines(cluster, PLAIN, 2, follow=False))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
            "Evicted: The node was low on",
        ),
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes",
                    }
                ]
            },
            "Unschedulable: 0/3 nodes",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
        (
            {
                "containerStatuses": [
                    {"state": {"terminated": {"reason": "Error", "message": "epoch 1\nerror: no\n"}}}
                ]
            },
            "Error: error: no",
        ),
        ({"containerStatuses": [{"state": {"running": {"startedAt": "now"}}}]}, "replaced 0"),
    ],
)
def test_status_says_why(status: dict, reason: str, connection) -> None:
    cluster, state = connection
    state.objects[f"{PODS}/first-0-a"] = pod(0, "first-0-a", "2026-01-01T00:00:00Z", "Pending") | {
        "status": status
    }
    (worker,) = workers(cluster, PLAIN)
    assert reason in worker.line()


def test_progress_comes_from_the_store(tmp_path) -> None:
    write_status(Store(str(tmp_path)), "running", 12, 0.25)
    assert progress(str(tmp_path)) == "run running  step 12  loss 0.250000"
