"""Talks to a cluster: server-side apply, reading back, and deleting what a job made."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qflock.deploy.pods import MANAGER, Manifest
from qflock.deploy.spec import JobSpec
from qflock.errors import ConfigurationError, QflockError

PATHS = {
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Service": ("/api/v1", "services"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Job": ("/apis/batch/v1", "jobs"),
    "JobSet": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
    "TFJob": ("/apis/kubeflow.org/v1", "tfjobs"),
}
TRANSIENT = {429, 500, 502, 503, 504}
ATTEMPTS, TIMEOUT_SECONDS = 4, 15.0


class ClusterError(QflockError):
    """The cluster refused or did not answer."""


@dataclass(frozen=True)
class Change:
    """What `apply` or `delete` did to one object."""

    kind: str
    name: str
    verb: str


@dataclass(frozen=True)
class Cluster:
    """A connection.

    Args:
        client: A `kubernetes.client.ApiClient`.
        pause: Waits between attempts.
    """

    client: Any
    pause: Callable[[float], None] = time.sleep

    def call(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Any:
        """One request, again after a passing fault; None for an object that is not there."""
        for attempt in range(ATTEMPTS):
            status, answer = self._once(method, path, body, query or {})
            if status == 404:
                return None
            if 200 <= status < 300:
                return answer
            if status not in TRANSIENT and status != 0:
                break
            if attempt < ATTEMPTS - 1:
                self.pause(0.5 * 2**attempt)
        raise ClusterError(_explain(method, path, status, answer))

    def _once(self, method: str, path: str, body: Any, query: dict[str, str]) -> tuple[int, Any]:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        content = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        try:
            data, status, _ = self.client.call_api(
                path, method, query_params=list(query.items()), body=body, response_type="object",
                header_params={"Accept": "application/json", "Content-Type": content},
                auth_settings=["BearerToken"], _request_timeout=TIMEOUT_SECONDS,
            )  # fmt: skip
            return status, data
        except ApiException as error:
            return int(error.status or 0), _message(error)
        except (HTTPError, OSError) as error:
            return 0, f"no answer ({type(error).__name__})"

    def lines(self, path: str, follow: bool) -> Iterator[str]:
        """Text of a log, line by line; with `follow` until it ends."""
        from kubernetes.client.exceptions import ApiException

        try:
            response, _, _ = self.client.call_api(
                path, "GET", query_params=[("follow", str(follow).lower())],
                auth_settings=["BearerToken"], _preload_content=False,
                _request_timeout=None if follow else TIMEOUT_SECONDS,
            )  # fmt: skip
        except ApiException as error:
            raise ClusterError(_explain("GET", path, int(error.status or 0), _message(error))) from None
        rest = b""
        for chunk in response.stream():
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
        if rest:
            yield rest.decode(errors="replace")


def connect(context: str | None = None) -> Cluster:
    """The cluster of the kubeconfig, or of the pod this runs in.

    Raises:
        ConfigurationError: If there is neither, or the client is not installed.
    """
    try:
        from kubernetes import client, config
        from kubernetes.config.config_exception import ConfigException
        from yaml import YAMLError
    except ImportError:
        raise ConfigurationError("A cluster needs the Kubernetes client: pip install 'qflock[k8s]'") from None
    settings = client.Configuration()
    try:
        if context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=settings)
        else:
            config.load_kube_config(context=context, client_configuration=settings)
    except (ConfigException, YAMLError, OSError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            f"A kubeconfig must name a cluster, but: {reason}; see `kubectl config get-contexts`"
        ) from None
    settings.retries = False
    return Cluster(client.ApiClient(settings))


def apply(cluster: Cluster, objects: Sequence[Manifest], dry_run: bool = False) -> list[Change]:
    """Submits objects server-side, all of them or none.

    They are rehearsed first, so that what the cluster refuses changes nothing. Should it fail after all, or be
    interrupted, what was created is deleted again.

    Args:
        cluster: Where.
        objects: In the order in which they are to be made.
        dry_run: Whether to leave it at the rehearsal.

    Returns:
        One change for each object.

    Raises:
        ClusterError: If the cluster refuses an object; says what is left behind, should anything be.
    """
    rehearsed = [_apply_one(cluster, each, dry_run=True) for each in objects]
    if dry_run:
        return rehearsed
    changes: list[Change] = []
    try:
        for each in objects:
            changes.append(_apply_one(cluster, each, dry_run=False))
    except (ClusterError, KeyboardInterrupt) as error:
        # The one that failed may exist too: the cluster's answer can get lost on the way back.
        begun = zip(objects, rehearsed[: len(changes) + 1], strict=False)
        left = _take_back(cluster, [each for each, change in begun if change.verb == "created"])
        if left:
            raise ClusterError(
                f"{error}; left behind: {', '.join(left)}; run `qflock deploy delete`"
            ) from None
        raise
    return changes


def _take_back(cluster: Cluster, created: list[Manifest]) -> list[str]:
    """Deletes the objects, the last made first; returns those that could not be deleted."""
    left = []
    for each in reversed(created):
        try:
            if _ours(cluster.call("GET", address(each))):
                _delete_one(cluster, address(each))
        except ClusterError:
            left.append(f"{each['kind']} {each['metadata']['name']}")
    return left


def _apply_one(cluster: Cluster, each: Manifest, dry_run: bool) -> Change:
    before = cluster.call("GET", address(each))
    name = each["metadata"]["name"]
    if before is not None and not _ours(before):
        raise ClusterError(f"{each['kind']} {name} belongs to others and is left alone; choose another name")
    query = {"fieldManager": MANAGER} | ({"dryRun": "All"} if dry_run else {})
    after = cluster.call("PATCH", address(each), each, query)
    if after is None:
        raise ClusterError(f"{each['kind']} {name} cannot be made: the cluster has no such kind or namespace")
    if before is None:
        return Change(each["kind"], name, "created")
    same = before["metadata"].get("resourceVersion") == after["metadata"].get("resourceVersion")
    return Change(each["kind"], name, "unchanged" if same else "configured")


def _ours(found: Any) -> bool:
    marks = (found or {}).get("metadata", {}).get("labels", {})
    return bool(marks.get("app.kubernetes.io/managed-by") == MANAGER)


def delete(cluster: Cluster, job: JobSpec, dry_run: bool = False) -> Iterator[Change]:
    """Deletes the objects that carry the job's labels, the last made first, and nothing else."""
    selector = f"app.kubernetes.io/managed-by={MANAGER},app.kubernetes.io/instance={job.name}"
    for kind in reversed(PATHS):
        for found in listing(cluster, kind, job.namespace, selector):
            meta = found["metadata"]
            if not meta.get("ownerReferences"):
                if not dry_run:
                    _delete_one(cluster, f"{collection(kind, job.namespace)}/{meta['name']}")
                yield Change(kind, meta["name"], "deleted")


def listing(cluster: Cluster, kind: str, namespace: str, selector: str) -> list[Any]:
    """Objects of a kind with these labels; none where the cluster does not know the kind."""
    found = cluster.call("GET", collection(kind, namespace), query={"labelSelector": selector})
    return list(found["items"]) if found else []


def _delete_one(cluster: Cluster, path: str) -> None:
    cluster.call(
        "DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    )


def collection(kind: str, namespace: str) -> str:
    """Path of a kind's objects in a namespace."""
    base, plural = PATHS[kind]
    return f"{base}/namespaces/{namespace}/{plural}"


def address(each: Manifest) -> str:
    """Path of one object."""
    return f"{collection(each['kind'], each['metadata']['namespace'])}/{each['metadata']['name']}"


def _message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)


def _explain(method: str, path: str, status: int, answer: Any) -> str:
    what = {
        0: "the cluster does not answer; check the address and your network",
        401: "the credentials are not valid; log in again",
        403: "your account lacks a permission",
        409: "another manager owns these fields; delete the object or choose another name",
        422: "the cluster refuses the object",
        429: "the cluster is overloaded; try again later",
    }.get(status, f"HTTP {status}")
    return f"{method} {path}: {what} ({answer})"
