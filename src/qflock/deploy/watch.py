"""What a submitted job is doing: its workers, its run, its logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qflock.deploy.cluster import Cluster, ClusterError
from qflock.deploy.pods import labels
from qflock.deploy.spec import JobSpec

INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index")


@dataclass(frozen=True)
class WorkerState:
    """One worker as the cluster sees it; `replaced` counts its earlier pods that are still listed."""

    index: int
    pod: str
    phase: str
    replaced: int
    reason: str

    def line(self) -> str:
        """For people."""
        text = f"worker {self.index}  {self.phase}  replaced {self.replaced}  {self.reason}"
        return text.rstrip()


def workers(cluster: Cluster, job: JobSpec) -> list[WorkerState]:
    """The newest pod of each worker, by index."""
    groups: dict[int, list[Any]] = {}
    for pod in _pods(cluster, job):
        groups.setdefault(_index(pod), []).append(pod)
    return [_state(index, groups[index]) for index in sorted(groups)]


def _pods(cluster: Cluster, job: JobSpec) -> list[Any]:
    selector = ",".join(f"{key}={value}" for key, value in labels(job, "worker").items())
    query = {"labelSelector": selector}
    found = cluster.call("GET", f"/api/v1/namespaces/{job.namespace}/pods", query=query)
    return list(found["items"]) if found else []


def _index(pod: Any) -> int:
    known = pod["metadata"].get("labels", {})
    return next((int(known[name]) for name in INDEX_LABELS if name in known), 0)


def _state(index: int, pods: list[Any]) -> WorkerState:
    newest = max(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", ""))
    status = newest.get("status", {})
    return WorkerState(
        index, newest["metadata"]["name"], status.get("phase", "Unknown"), len(pods) - 1, _reason(status)
    )


def _reason(status: Any) -> str:
    """Why a pod is where it is: taken away, not scheduled, waiting, or ended with its last words."""
    unscheduled = [
        c for c in status.get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"
    ]
    states = [s for c in status.get("containerStatuses", []) for s in c.get("state", {}).values() if s]
    for each in (status, *unscheduled, *states):
        if each.get("reason"):
            lines = str(each.get("message", "")).strip().splitlines()
            return f"{each['reason']}: {lines[-1]}" if lines else str(each["reason"])
    return ""


def progress(store: str) -> str:
    """The run's state, last step and loss, from its store."""
    from qflock.training.run import read_status
    from qflock.training.store import Store

    status = read_status(Store(store))
    loss = "" if status.loss is None else f"  loss {status.loss:.6f}"
    return f"run {status.state}  step {status.step}{loss}"


def log_lines(cluster: Cluster, job: JobSpec, index: int, follow: bool) -> Iterator[str]:
    """Lines of a worker's newest pod.

    Raises:
        ClusterError: If the worker has no pod, or its log cannot be read.
    """
    states = {each.index: each for each in workers(cluster, job)}
    if index not in states:
        there = ", ".join(map(str, states)) or "none"
        raise ClusterError(f"Argument `worker` must have a pod, but is {index}; workers with a pod: {there}")
    yield from cluster.lines(f"/api/v1/namespaces/{job.namespace}/pods/{states[index].pod}/log", follow)
