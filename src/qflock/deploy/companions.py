"""What stands beside the training: accounts, network rules, TensorBoard and inference."""

from __future__ import annotations

from qflock.deploy.pods import Manifest, container, labels, metadata, pod
from qflock.deploy.spec import JobSpec

TENSORBOARD_PORT = 6006
CAPTURE = "capture"
"""The component that a pod must be labelled with to reach the workers' profiler."""


def viewer_account(job: JobSpec) -> str:
    """The account of TensorBoard, which may only read."""
    return f"{job.name}-viewer"


def accounts(job: JobSpec) -> list[Manifest]:
    """One account that writes the store and one that reads it; neither may call the cluster's API."""
    names = {} if job.service_account else {job.account: "worker"}
    if job.tensorboard:
        names[viewer_account(job)] = "tensorboard"
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(job, component, name),
            "automountServiceAccountToken": False,
        }
        for name, component in names.items()
    ]


def network_policies(job: JobSpec) -> list[Manifest]:
    """Workers hear each other, and captures and TensorBoard on the profiler's port; the others hear nobody."""
    rules = [
        _allow(job, "worker", job.port),
        *(_allow(job, component, job.profiler_port) for component in ("tensorboard", CAPTURE)),
    ]
    closed: list[Manifest] = []
    return [_policy(job, "worker", rules), _policy(job, "inference", closed)] + (
        [_policy(job, "tensorboard", closed)] if job.tensorboard else []
    )


def _allow(job: JobSpec, component: str, port: int) -> Manifest:
    peer = {"podSelector": {"matchLabels": labels(job, component)}}
    return {"from": [peer], "ports": [{"protocol": "TCP", "port": port}]}


def _policy(job: JobSpec, component: str, ingress: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(job, component, f"{job.name}-{component}"),
        "spec": {
            "podSelector": {"matchLabels": labels(job, component)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def tensorboard(job: JobSpec) -> list[Manifest]:
    """A Deployment and a ClusterIP Service, reached through a port-forward only."""
    name = f"{job.name}-tensorboard"
    # The fast loader takes credentials of its own, panics without them, and knows no s3://.
    command = [
        "tensorboard",
        f"--logdir={job.store}",
        "--load_fast=false",
        "--bind_all",
        f"--port={TENSORBOARD_PORT}",
    ]
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 10}
    size = {"cpu": "500m", "memory": "1Gi"}
    viewer = job.model_copy(update={"secret": job.viewer_secret})
    board = container(viewer, "tensorboard", command) | {
        "image": job.tensorboard_image,
        "ports": [{"name": "http", "containerPort": TENSORBOARD_PORT}],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {"requests": size, "limits": size},
        "readinessProbe": probe,
        "startupProbe": probe | {"failureThreshold": 30},
    }
    deployment = {
        "replicas": 1,
        "selector": {"matchLabels": labels(job, "tensorboard")},
        "template": pod(job, "tensorboard", board, viewer_account(job), restart="Always"),
    }
    service = {
        "type": "ClusterIP",
        "selector": labels(job, "tensorboard"),
        "ports": [{"name": "http", "port": TENSORBOARD_PORT, "targetPort": "http"}],
    }
    about = metadata(job, "tensorboard", name)
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": service},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": deployment},
    ]


def inference(job: JobSpec) -> list[Manifest]:
    """A Job that predicts the stored validation examples from the run's newest weights."""
    command = ["qflock", "infer", job.store]
    if job.experiment.what != "qcnn":
        command.append(f"--experiment={job.experiment.what}")
    spec = {
        "backoffLimit": job.limits.restarts,
        "activeDeadlineSeconds": job.limits.deadline_seconds,
        "ttlSecondsAfterFinished": job.limits.keep_seconds,
        "template": pod(job, "inference", container(job, "inference", command), job.account),
    }
    about = metadata(job, "inference", f"{job.name}-inference")
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}]
