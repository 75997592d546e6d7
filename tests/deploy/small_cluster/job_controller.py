"""The contract of the Job controller for Indexed Jobs: who is replaced, what counts, when it is over."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.deploy.small_cluster.kubelet import Pod

INDEX = "batch.kubernetes.io/job-completion-index"
Verdict = Literal["FailJob", "Ignore", "Count"]


def verdict(policy: dict[str, Any], container: str, exit_code: int, conditions: Iterable[str]) -> Verdict:
    """What the first rule of a podFailurePolicy that fits says about a failed pod."""
    for rule in policy["rules"]:
        (kind,) = set(rule) - {"action"}
        if kind == "onPodConditions":
            fits = any(c["status"] == "True" and c["type"] in conditions for c in rule[kind])
        else:
            codes = rule[kind]
            assert codes["operator"] == "In"
            fits = codes.get("containerName", container) == container and exit_code in codes["values"]
        if fits:
            action: Verdict = rule["action"]
            return action
    return "Count"


@dataclass
class JobController:
    """Acts for one Job.

    Args:
        job: The manifest.
        start: Starts a pod.
        remove: Takes what is left of an ended pod away from the network.
    """

    job: dict[str, Any]
    start: Callable[[dict[str, Any]], Pod]
    remove: Callable[[Pod], None]
    active: dict[int, Pod] = field(default_factory=dict)
    ended: list[Pod] = field(default_factory=list)
    succeeded: set[int] = field(default_factory=set)
    failures: int = 0
    state: str = "Running"

    def act(self) -> str:
        """Looks at every pod once, and returns the Job's state: Running, Complete, or why it failed."""
        spec = self.job["spec"]
        for index, pod in list(self.active.items()):
            if pod.exit_code() is not None:
                del self.active[index]
                self._judge(index, pod)
        if len(self.succeeded) == spec.get("completions", 1):
            self.state = "Complete"
        elif self.state == "Running" and self.failures > spec["backoffLimit"]:
            self.state = "BackoffLimitExceeded"
        if self.state == "Running":
            self._replace()
        else:
            self.stop()
        return self.state

    def stop(self) -> None:
        """Ends the pods that still run."""
        for pod in self.active.values():
            pod.terminate()
            self._over(pod)
        self.active.clear()

    def _judge(self, index: int, pod: Pod) -> None:
        self._over(pod)
        code = pod.exit_code()
        assert code is not None
        if code == 0:
            self.succeeded.add(index)
            return
        policy = self.job["spec"].get("podFailurePolicy", {"rules": []})
        match verdict(policy, pod.container["name"], code, pod.conditions):
            case "FailJob":
                self.state = "PodFailurePolicy"
            case "Count":
                self.failures += 1

    def _over(self, pod: Pod) -> None:
        self.remove(pod)
        self.ended.append(pod)

    def _replace(self) -> None:
        """Only an ended pod is replaced (`podReplacementPolicy: Failed`), so no two pods have the same name in DNS."""
        spec = self.job["spec"]
        assert spec.get("podReplacementPolicy", "Failed") == "Failed"
        for index in range(spec.get("parallelism", 1)):
            if index not in self.active and index not in self.succeeded:
                self.active[index] = self.start(self._pod(index))

    def _pod(self, index: int) -> dict[str, Any]:
        pod = copy.deepcopy(self.job["spec"]["template"])
        name, attempt = self.job["metadata"]["name"], len(self.ended) + len(self.active)
        about = pod["metadata"] | {"namespace": self.job["metadata"]["namespace"]}
        indexed = self.job["spec"].get("completionMode") == "Indexed"
        about["name"] = f"{name}-{index}-{attempt}" if indexed else f"{name}-{attempt}"
        about["labels"] = about["labels"] | {"batch.kubernetes.io/job-name": name}
        if indexed:
            about["labels"][INDEX] = str(index)
            about["annotations"] = {INDEX: str(index)}
            pod["spec"].setdefault("hostname", f"{name}-{index}")
            (container,) = pod["spec"]["containers"]
            container["env"] = [{"name": "JOB_COMPLETION_INDEX", "value": str(index)}, *container["env"]]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": pod["spec"]}
