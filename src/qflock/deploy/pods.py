"""The parts that all pods share: labels, security, scheduling, the worker's container."""

from __future__ import annotations

import json
import math
from typing import Any

from qflock.cluster.profiler_server import PORT_VARIABLE
from qflock.cluster.supervision import FOLDER_VARIABLE
from qflock.deploy.spec import JobSpec

Manifest = dict[str, Any]
MANAGER = "qflock"
INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
SPOT_GRACE_SECONDS = 15
SUPERVISION_FOLDER = "/tmp/qflock"
GKE_SPOT = "cloud.google.com/gke-spot"


def labels(job: JobSpec, component: str) -> dict[str, str]:
    """Labels of one component; `delete` goes by them."""
    return {
        "app.kubernetes.io/name": "qflock",
        "app.kubernetes.io/instance": job.name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": MANAGER,
    }


def metadata(job: JobSpec, component: str, name: str | None = None) -> Manifest:
    """Metadata of a namespaced object."""
    return {"name": name or job.name, "namespace": job.namespace, "labels": labels(job, component)}


def pod_security() -> Manifest:
    """The restricted pod security standard."""
    return {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Manifest:
    """No way to more rights than the process starts with, and nothing written into the image."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pod(
    job: JobSpec, component: str, container: Manifest, account: str, restart: str | None = "Never"
) -> Manifest:
    """A pod template around one container."""
    spec: Manifest = {
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Linux keeps the default action of a signal from process 1: alone in its namespace, a worker that is still starting
        # would ignore SIGTERM and be killed after the grace period.
        "shareProcessNamespace": True,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": SPOT_GRACE_SECONDS,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    if restart:
        spec["restartPolicy"] = restart
    return {"metadata": {"labels": labels(job, component)}, "spec": spec | scheduling(job, component)}


def scheduling(job: JobSpec, component: str) -> Manifest:
    """Node selector, tolerations and, for workers, a soft spread over nodes."""
    selector = dict(job.schedule.node_selector)
    tolerations = [each.model_dump(exclude_defaults=True) for each in job.schedule.tolerations]
    for given, each in zip(job.schedule.tolerations, tolerations, strict=True):
        each |= {"operator": given.operator, "effect": given.effect}
    # TensorBoard outlives the training: on a spot node it would keep that node from being given back.
    if job.schedule.spot and job.google and component != "tensorboard":
        selector[GKE_SPOT] = "true"
        taint = {
            "key": GKE_SPOT,
            "operator": "Equal",
            "value": "true",
            "effect": "NoSchedule",
        }
        tolerations.append(taint)
    result: Manifest = {"nodeSelector": selector, "tolerations": tolerations}
    if component == "worker":
        result["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels(job, component)},
            }
        ]
    return {key: value for key, value in result.items() if value}


def worker_container(job: JobSpec, port_name: str = "training") -> Manifest:
    """Trains as one worker; the container's name is what the training operator expects."""
    ports = [(port_name, job.port), ("profiler", job.profiler_port)]
    command = ["qflock", "train", *job.experiment.arguments(), f"--run={job.store}"]
    return container(job, "tensorflow", command) | {
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "env": [*identity(job), *environment(job), *supervision(job)],
        **probes(job),
    }


def supervision(job: JobSpec) -> list[Manifest]:
    """Where a worker says how far it is, and where its profiler listens."""
    values = {FOLDER_VARIABLE: SUPERVISION_FOLDER, PORT_VARIABLE: str(job.profiler_port)}
    return [{"name": name, "value": value} for name, value in values.items()]


def probes(job: JobSpec) -> Manifest:
    """A worker lives as long as it ends steps.

    An open port would prove nothing: TensorFlow's server answers while a step hangs. Until the first step has ended, which
    takes as long as the circuits take to compile, only the startup probe looks.
    """
    steps = f"find {SUPERVISION_FOLDER} -name 'step-*'"
    minutes = math.ceil(job.limits.stall_seconds / 60)
    return {
        "startupProbe": _finds(steps, 10) | {"failureThreshold": math.ceil(job.limits.start_seconds / 10)},
        "livenessProbe": _finds(f"{steps} -mmin -{minutes}", 60) | {"failureThreshold": 3},
    }


def _finds(find: str, period: int) -> Manifest:
    """Succeeds where a file is found; the answer may be late while all cores are busy."""
    return {
        "exec": {"command": ["sh", "-c", f'test -n "$({find})"']},
        "periodSeconds": period,
        "timeoutSeconds": 10,
    }


def container(job: JobSpec, name: str, command: list[str]) -> Manifest:
    """A container of the job's image with the worker's resources."""
    size = {"cpu": str(job.resources.cpu), "memory": job.resources.memory}
    return variables_of(job.secret) | {
        "name": name,
        "image": job.image,
        "command": command,
        "env": environment(job),
        "resources": {"requests": size, "limits": size},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "workingDir": "/tmp",
        "terminationMessagePolicy": "FallbackToLogsOnError",  # so that `status` can say why a worker failed
    }


def variables_of(secret: str | None) -> Manifest:
    """The part of a container that turns the keys of a Secret into variables."""
    return {"envFrom": [{"secretRef": {"name": secret}}]} if secret else {}


def environment(job: JobSpec) -> list[Manifest]:
    """Variables of every container that runs qflock."""
    values = {
        "HOME": "/tmp",
        "PYTHONUNBUFFERED": "1",
        "QFLOCK_THREADS": str(job.resources.cpu),
    } | job.environment
    return [{"name": name, "value": value} for name, value in values.items()]


def identity(job: JobSpec) -> list[Manifest]:
    """TF_CONFIG from the completion index, which the kubelet fills in; TFJobs get theirs elsewhere."""
    if job.kind == "tfjob":
        return []
    template = {"cluster": {"worker": list(job.addresses())}, "task": {"type": "worker", "index": 0}}
    config = json.dumps(template).replace('"index": 0', '"index": $(QFLOCK_INDEX)')
    return [
        {"name": "QFLOCK_INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX_FIELD}}},
        {"name": "TF_CONFIG", "value": config},
    ]
