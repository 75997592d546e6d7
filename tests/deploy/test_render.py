"""Manifests against golden files, the published schemas, and rules of our own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from kubeflow_trainer_api.models import JobsetV1alpha2JobSet

from qflock.cluster.identity import identity_from
from qflock.deploy.kustomize import kustomize_files
from qflock.deploy.render import Task, manifests, render
from qflock.deploy.spec import JobSpec, Limits
from tests.deploy import strict_models
from tests.deploy.jobs import JOBS, PLAIN

GOLDEN = Path(__file__).parent / "golden"
KUSTOMIZE = Path(__file__).parents[2] / "deploy" / "kustomize"
VERSIONS = ("1.35", "1.36", "1.37")
CASES = [(name, task) for name in JOBS for task in ("train", "infer")]
CUSTOM = {"JobSet", "TFJob"}


@pytest.fixture
def in_step(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, (
            f"{path} is out of step: if the change is intended, run `make golden`"
        )

    return check


@pytest.mark.parametrize(("name", "task"), CASES)
def test_text_is_the_golden_file(name: str, task: Task, in_step: Callable[[Path, str], None]) -> None:
    in_step(GOLDEN / f"{name}-{task}.yaml", render(JOBS[name], task))


def test_kustomize_is_in_step_and_complete(in_step: Callable[[Path, str], None]) -> None:
    files = kustomize_files()
    for path, text in files.items():
        in_step(KUSTOMIZE / path, text)
    assert {str(path.relative_to(KUSTOMIZE)) for path in KUSTOMIZE.rglob("*.yaml")} == set(files)
    for path, text in files.items():
        if path.endswith("kustomization.yaml"):
            for resource in yaml.safe_load(text)["resources"]:
                assert (KUSTOMIZE / path).parent.joinpath(resource).exists()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_published_schemas_accept_it(name: str, task: Task, version: str) -> None:
    for each in yaml.safe_load_all(render(JOBS[name], task)):
        if each["kind"] not in CUSTOM:
            kubernetes_validate.validate(each, version, strict=True)


def test_schemas_refuse_a_misspelt_field() -> None:
    service = next(each for each in manifests(JOBS["indexed-job"]) if each["kind"] == "Service")
    service["spec"]["selectr"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, VERSIONS[-1], strict=True)


def test_jobset_round_trips_through_the_published_model() -> None:
    (jobset,) = [each for each in manifests(JOBS["jobset"]) if each["kind"] == "JobSet"]
    parsed = JobsetV1alpha2JobSet.from_dict(jobset)
    assert json.loads(json.dumps(parsed.to_dict(), default=str)) == jobset
    (group,) = jobset["spec"]["replicatedJobs"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x"},
        "spec": group["template"]["spec"],
    }
    kubernetes_validate.validate(job, VERSIONS[-1], strict=True)


def test_any_failure_restarts_the_whole_jobset_and_bad_input_ends_it() -> None:
    (jobset,) = [each for each in manifests(JOBS["jobset"]) if each["kind"] == "JobSet"]
    (group,) = jobset["spec"]["replicatedJobs"]
    inner = group["template"]["spec"]
    assert inner["backoffLimit"] == 0
    assert {rule["action"] for rule in inner["podFailurePolicy"]["rules"]} == {"FailJob"}
    # The messages of the Job controller, for the two ways in which a pod can match a FailJob rule.
    bad = "Container tensorflow for pod default/x failed with exit code 2 matching FailJob rule at index 0"
    gone = "Pod default/x has condition DisruptionTarget matching FailJob rule at index 1"
    stopped = (
        "Container tensorflow for pod default/x failed with exit code 143 matching FailJob rule at index 2"
    )
    free = "RestartJobSetAndIgnoreMaxRestarts"
    for reason, message, action in [
        ("PodFailurePolicy", bad, "FailJobSet"),
        ("PodFailurePolicy", gone, free),
        ("PodFailurePolicy", stopped, free),
        ("BackoffLimitExceeded", "Job has reached the specified backoff limit", "RestartJobSet"),
        ("DeadlineExceeded", "Job was active longer than specified deadline", "FailJobSet"),
    ]:
        assert _jobset_action(jobset["spec"]["failurePolicy"]["rules"], reason, message) == action


def _jobset_action(rules: list[dict], reason: str, message: str) -> str:
    for rule in rules:
        patterns = rule.get("onJobFailureMessagePatterns", [""])
        if reason in rule["onJobFailureReasons"] and any(re.search(p, message) for p in patterns):
            return str(rule["action"])
    return "RestartJobSet"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec", "runPolicy", "cleanPodPolice"), "Running", "spec.runPolicy must not have cleanPodPolice"),
        (("spec", "runPolicy", "backoffLimit"), "6", r"spec.runPolicy.backoffLimit must be int, but is '6'"),
        (("spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"), [{}], "must not be `None`"),
    ],
)
def test_the_models_refuse_what_does_not_fit(path: tuple[str, ...], value: object, message: str) -> None:
    (tfjob,) = [each for each in manifests(JOBS["tfjob"]) if each["kind"] == "TFJob"]
    place = tfjob
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        strict_models.check(tfjob, "KubeflowOrgV1TFJob")


def test_tfjob_fits_the_published_models() -> None:
    (tfjob,) = [each for each in manifests(JOBS["tfjob"]) if each["kind"] == "TFJob"]
    strict_models.check(tfjob, "KubeflowOrgV1TFJob")
    assert set(tfjob["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"]) == {"labels"}
    worker = tfjob["spec"]["tfReplicaSpecs"]["Worker"]
    assert worker["restartPolicy"] == "ExitCode"
    (container,) = worker["template"]["spec"]["containers"]
    assert container["name"] == "tensorflow"
    assert {"name": "tfjob-port", "containerPort": 2222, "protocol": "TCP"} in container["ports"]
    assert "TF_CONFIG" not in {each["name"] for each in container["env"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": worker["template"]["spec"]}
    kubernetes_validate.validate(pod, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", ["indexed-job", "jobset"])
def test_each_index_becomes_an_identity_whose_names_a_service_resolves(name: str) -> None:
    job = JOBS[name]
    environment = {each["name"]: each.get("value") for each in _worker(job)["env"]}
    for index in range(job.workers):
        text = environment["TF_CONFIG"].replace("$(QFLOCK_INDEX)", str(index))
        identity = identity_from({"TF_CONFIG": text})
        assert identity is not None
        assert (identity.index, identity.count) == (index, job.workers)
        stem = f"{job.name}-workers-0" if name == "jobset" else job.name
        assert identity.addresses[index] == f"{stem}-{index}.{job.name}:{job.port}"
    if name == "indexed-job":
        (service,) = [
            e for e in manifests(job) if e["kind"] == "Service" and e["spec"].get("clusterIP") == "None"
        ]
        template = next(e for e in manifests(job) if e["kind"] == "Job")["spec"]["template"]
        assert service["metadata"]["name"] == template["spec"]["subdomain"]
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()


def test_the_longest_job_fits_the_limits() -> None:
    job = JobSpec(name="a" * 40, store="gs://bucket/a", workers=1000, kind="jobset")
    assert all(len(address.split(".")[0]) <= 63 for address in job.addresses())
    text = next(each["value"] for each in _worker(job)["env"] if each["name"] == "TF_CONFIG")
    assert len(text) < 128 * 1024, "the kernel's limit of one variable"


@pytest.mark.parametrize(("name", "task"), CASES)
def test_restricted_pods_short_names_and_labels(name: str, task: Task) -> None:
    for each in manifests(JOBS[name], task):
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", each["metadata"]["name"])
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "first"
        for pod in _pods(each):
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert pod["automountServiceAccountToken"] is False
            for container in pod["containers"]:
                security = container["securityContext"]
                assert security["allowPrivilegeEscalation"] is False
                assert security["readOnlyRootFilesystem"] is True
                assert security["capabilities"] == {"drop": ["ALL"]}
                assert container["resources"]["requests"] == container["resources"]["limits"]


def test_probes_ask_for_a_step_and_for_a_recent_one(tmp_path: Path) -> None:
    limits = Limits(stall_seconds=600, start_seconds=7200)
    worker = _worker(PLAIN.model_copy(update={"limits": limits}))
    folder = next(each["value"] for each in worker["env"] if each["name"] == "QFLOCK_SUPERVISION")
    startup, liveness = worker["startupProbe"], worker["livenessProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 7200

    def passes(probe: dict) -> bool:
        command = [part.replace(folder, str(tmp_path)) for part in probe["exec"]["command"]]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    assert not passes(startup)
    step = tmp_path / "step-2"
    step.write_text("1")
    assert passes(startup) and passes(liveness)
    for age, alive in ((500, True), (700, False)):
        os.utime(step, (time.time() - age,) * 2)
        assert (passes(startup), passes(liveness)) == (True, alive)


def test_secrets_go_to_those_they_are_for() -> None:
    job = PLAIN.model_copy(update={"secret": "writer-keys", "viewer_secret": "reader-keys"})
    found = {}
    for each in [*manifests(job), *manifests(job, "infer")]:
        if each["kind"] in ("Job", "Deployment"):
            kubernetes_validate.validate(each, VERSIONS[-1], strict=True)
        for pod in _pods(each):
            (container,) = pod["containers"]
            found[container["name"]] = container["envFrom"]
    writer, reader = ([{"secretRef": {"name": f"{who}-keys"}}] for who in ("writer", "reader"))
    assert found == {"tensorflow": writer, "inference": writer, "tensorboard": reader}


def test_network_rules_let_only_the_right_pods_in() -> None:
    rules = {
        e["metadata"]["name"]: e["spec"]
        for e in manifests(JOBS["indexed-job"])
        if e["kind"] == "NetworkPolicy"
    }
    allowed = {
        (
            rule["ports"][0]["port"],
            rule["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"],
        )
        for rule in rules["first-worker"]["ingress"]
    }
    assert allowed == {(2222, "worker"), (2223, "tensorboard"), (2223, "capture")}
    assert rules["first-tensorboard"]["ingress"] == []


def _worker(job: JobSpec) -> dict:
    return next(
        pod["containers"][0]
        for each in manifests(job)
        for pod in _pods(each)
        if pod["containers"][0]["name"] == "tensorflow"
    )


def _pods(value: object) -> list[dict]:
    if isinstance(value, list):
        return [pod for each in value for pod in _pods(each)]
    if not isinstance(value, dict):
        return []
    return [value] if "containers" in value else [pod for each in value.values() for pod in _pods(each)]
