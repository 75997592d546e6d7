"""The parts of the tests' own cluster that are pure: rules, names, variables, verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from qflock.deploy.render import manifests
from tests.deploy.jobs import PLAIN
from tests.deploy.small_cluster.job_controller import verdict
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
