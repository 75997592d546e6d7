"""The training as an Indexed Job, a JobSet or a TFJob."""

from __future__ import annotations

from collections.abc import Callable

from qflock.deploy.pods import Manifest, labels, metadata, pod, worker_container
from qflock.deploy.spec import JobSpec

PERMANENT, PREEMPTED = 2, 143


def training(job: JobSpec) -> list[Manifest]:
    """The objects that train, of the job's kind."""
    return KINDS[job.kind](job)


def job_template(job: JobSpec) -> Manifest:
    """The spec of an Indexed Job: one pod per worker, replaced when it fails."""
    template = pod(job, "worker", worker_container(job), job.account)
    template["spec"]["subdomain"] = job.name
    return {
        "completionMode": "Indexed",
        "completions": job.workers,
        "parallelism": job.workers,
        "backoffLimit": job.limits.restarts,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": failure_rules()},
        "template": template,
    }


def failure_rules() -> list[Manifest]:
    """Bad input fails the job at once; a preemption costs no restart."""
    return [
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "tensorflow", "operator": "In", "values": [PERMANENT]},
        },
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "action": "Ignore",
            "onExitCodes": {"containerName": "tensorflow", "operator": "In", "values": [PREEMPTED]},
        },
    ]


def indexed_job(job: JobSpec) -> list[Manifest]:
    """An Indexed Job and the headless Service that names its pods."""
    spec = job_template(job) | {
        "activeDeadlineSeconds": job.limits.deadline_seconds,
        "ttlSecondsAfterFinished": job.limits.keep_seconds,
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, "worker"),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels(job, "worker"),
            "ports": [
                {"name": "training", "port": job.port},
                {"name": "profiler", "port": job.profiler_port},
            ],
        },
    }
    return [
        service,
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(job, "worker"), "spec": spec},
    ]


def jobset(job: JobSpec) -> list[Manifest]:
    """A JobSet, which restarts all workers together; its controller makes the headless Service."""
    template = job_template(job)
    del template["template"]["spec"]["subdomain"]
    template["activeDeadlineSeconds"] = job.limits.deadline_seconds
    permanent = {"name": "permanent", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    spec = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": job.name},
        "failurePolicy": {"maxRestarts": job.limits.restarts, "rules": [permanent]},
        "ttlSecondsAfterFinished": job.limits.keep_seconds,
        "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": template}}],
    }
    return [
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": metadata(job, "worker"),
            "spec": spec,
        }
    ]


def tfjob(job: JobSpec) -> list[Manifest]:
    """A TFJob; its controller makes one headless Service per worker and sets TF_CONFIG."""
    container = worker_container(job, port_name="tfjob-port")
    worker = {
        "replicas": job.workers,
        "restartPolicy": "ExitCode",
        "template": pod(job, "worker", container, job.account, restart=None),
    }
    spec = {
        "runPolicy": {
            "cleanPodPolicy": "Running",
            "backoffLimit": job.limits.restarts,
            "activeDeadlineSeconds": job.limits.deadline_seconds,
            "ttlSecondsAfterFinished": job.limits.keep_seconds,
        },
        "tfReplicaSpecs": {"Worker": worker},
    }
    return [
        {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata(job, "worker"), "spec": spec}
    ]


KINDS: dict[str, Callable[[JobSpec], list[Manifest]]] = {
    "indexed-job": indexed_job,
    "jobset": jobset,
    "tfjob": tfjob,
}
