"""The training as an Indexed Job, a JobSet or a TFJob."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

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
        "podFailurePolicy": {"rules": failure_rules(preempted="Ignore")},
        "template": template,
    }


def failure_rules(preempted: Literal["Ignore", "FailJob"]) -> list[Manifest]:
    """Bad input fails the job at once; a preempted pod is replaced for free, or fails the job for a JobSet to judge."""

    def on_exit_code(action: str, code: int) -> Manifest:
        return {
            "action": action,
            "onExitCodes": {"containerName": "tensorflow", "operator": "In", "values": [code]},
        }

    disrupted = {"action": preempted, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return [on_exit_code("FailJob", PERMANENT), disrupted, on_exit_code(preempted, PREEMPTED)]


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
    """A JobSet, which restarts all workers together; its controller makes the headless Service.

    Any failed pod fails the inner Job at once, since a Job would replace that pod alone and leave the others waiting.
    """
    template = job_template(job) | {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": failure_rules(preempted="FailJob")},
        "activeDeadlineSeconds": job.limits.deadline_seconds,
    }
    del template["template"]["spec"]["subdomain"]
    spec = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": job.name},
        "failurePolicy": {"maxRestarts": job.limits.restarts, "rules": restart_rules()},
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


def restart_rules() -> list[Manifest]:
    """What a JobSet does after its Job has failed: gives up, or restarts all workers, for free after a preemption.

    The reason of a Job does not tell bad input from a preemption; only its message does (JobSet 0.10.1 or newer).
    """
    by_policy = {"onJobFailureReasons": ["PodFailurePolicy"]}
    message = {"onJobFailureMessagePatterns": [f"failed with exit code {PERMANENT} "]}
    return [
        {"name": "permanent", "action": "FailJobSet"} | by_policy | message,
        {"name": "deadline", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        {"name": "preempted", "action": "RestartJobSetAndIgnoreMaxRestarts"} | by_policy,
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
