"""The parts of the tests' own cluster that are pure: rules, names, variables, verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from qflock.deploy.render import manifests
from tests.deploy.jobs import JOBS, PLAIN
from tests.deploy.small_cluster.job_controller import JobController, verdict
from tests.deploy.small_cluster.kubelet import environment
from tests.deploy.small_cluster.rules import Endpoint, names, packet_filter

OBJECTS = manifests(PLAIN)
POLICIES = [each for each in OBJECTS if each["kind"] == "NetworkPolicy"]
(JOB,) = [each for each in OBJECTS if each["kind"] == "Job"]
RULES = JOB["spec"]["podFailurePolicy"]


def worker(index: int, namespace: str = "default") -> Endpoint:
    marks = JOB["spec"]["template"]["metadata"]["labels"]
    return Endpoint(f"10.0.0.{index + 2}", namespace, marks, f"first-{index}", "first")


def test_a_selected_pod_hears_the_peers_of_its_namespace_only() -> None:
    text = packet_filter(worker(0), POLICIES, [worker(0), worker(1), worker(2, "elsewhere")])
    assert "policy drop" in text
    assert "ip saddr { 10.0.0.2, 10.0.0.3 } tcp dport 2222 accept" in text
    assert "2223" not in text, "nobody is there who may capture"


def test_a_pod_that_no_policy_selects_hears_everybody() -> None:
    assert "policy accept" in packet_filter(Endpoint("10.0.0.9", "default", {}), POLICIES, [])


def test_rules_that_are_not_known_are_not_passed_over() -> None:
    policy: dict[str, Any] = {
        "metadata": {"namespace": "default"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"ipBlock": {}}]}]},
    }
    with pytest.raises(ValueError, match=r"does not know.*ipBlock"):
        packet_filter(worker(0), [policy], [])


def test_names_are_those_of_headless_services() -> None:
    text = names([each for each in OBJECTS if each["kind"] == "Service"], [worker(1), worker(2, "elsewhere")])
    assert text.splitlines()[1:] == [
        "10.0.0.3 first-1.first first-1.first.default first-1.first.default.svc.cluster.local"
    ]


@pytest.mark.parametrize(
    ("code", "conditions", "expected"),
    [
        (2, set(), "FailJob"),
        (143, set(), "Ignore"),
        (137, {"DisruptionTarget"}, "Ignore"),
        (137, set(), "Count"),
        (1, set(), "Count"),
    ],
)
def test_the_failure_policy_decides(code: int, conditions: set[str], expected: str) -> None:
    assert verdict(RULES, "tensorflow", code, conditions) == expected


def test_variables_are_filled_in_as_the_kubelet_does() -> None:
    container = {
        "env": [
            {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
            {"name": "TEXT", "value": "$(INDEX) $(UNKNOWN) $$(INDEX) $(LATER)"},
            {"name": "LATER", "value": "x"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]
    }
    pod = {"metadata": {"name": "p", "labels": {"a/b": "7"}}, "spec": {"containers": [container]}}
    values = environment(pod, worker(0))
    assert values["TEXT"] == "7 $(UNKNOWN) $(INDEX) $(LATER)"
    assert (values["IP"], values["HOSTNAME"]) == ("10.0.0.2", "first-0")


@dataclass
class Actor:
    """A pod without a process: it ends as the test says."""

    manifest: dict[str, Any]
    code: int | None = None
    conditions: set[str] = field(default_factory=set)

    @property
    def container(self) -> dict[str, Any]:
        return dict(self.manifest["spec"]["containers"][0])

    def exit_code(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.code = 143


def controller(job: dict[str, Any]) -> JobController:
    return JobController(job, Actor, lambda pod: None)  # type: ignore[arg-type]


def end(job: JobController, index: int, code: int, *conditions: str) -> str:
    """Ends a worker's pod, and returns what becomes of the job."""
    actor: Any = job.active[index]
    actor.code, actor.conditions = code, set(conditions)
    return job.act()


def test_a_job_replaces_each_failed_worker_until_its_limit() -> None:
    job = controller(JOB)
    assert job.act() == "Running"
    for count in range(JOB["spec"]["backoffLimit"]):
        assert end(job, 1, 137) == "Running"
        assert (job.failures, sorted(job.active)) == (count + 1, [0, 1, 2])
    assert end(job, 1, 143) == end(job, 1, 137, "DisruptionTarget") == "Running", "these cost nothing"
    assert end(job, 1, 137) == "BackoffLimitExceeded"
    assert job.active == {}


def test_a_job_is_complete_when_every_index_has_succeeded() -> None:
    job = controller(JOB)
    job.act()
    assert [end(job, index, 0) for index in (2, 0, 1)] == ["Running", "Running", "Complete"]


@pytest.mark.parametrize(
    ("code", "conditions", "reason"),
    [
        (2, (), "PodFailurePolicy"),
        (143, (), "PodFailurePolicy"),
        (137, ("DisruptionTarget",), "PodFailurePolicy"),
        (137, (), "BackoffLimitExceeded"),
        (1, (), "BackoffLimitExceeded"),
    ],
)
def test_the_job_of_a_jobset_fails_with_its_first_worker(code: int, conditions: tuple, reason: str) -> None:
    (jobset,) = [each for each in manifests(JOBS["jobset"]) if each["kind"] == "JobSet"]
    (group,) = jobset["spec"]["replicatedJobs"]
    about = {"name": "first-workers-0", "namespace": "default"}
    job = controller({"metadata": about, "spec": group["template"]["spec"]})
    job.act()
    assert end(job, 2, code, *conditions) == reason
    assert (len(job.ended), job.active) == (3, {}), "nobody was replaced"
