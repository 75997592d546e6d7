"""Runs the container of a pod as the kubelet and the container runtime would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deploy.small_cluster.node import Node, entering
from tests.deploy.small_cluster.rules import Endpoint

CHECKOUT = Path(__file__).parents[3]
# The root is read-only and /tmp is the pod's own, except that what serves as the image stays visible below /tmp too.
ENTER = """
set -e
pod=$1 hosts=$2; shift 2
mount --bind "$hosts" /etc/hosts
while [ "$1" != -- ]; do
  case "$1" in /tmp/*)
    mkdir -p "$pod$1"
    mount --bind "$1" "$pod$1"
    mount -o remount,bind,ro "$pod$1" ;;
  esac
  shift
done
shift
mount --rbind "$pod/tmp" /tmp
mount -o remount,bind,ro /
cd "$1"; shift
exec setpriv --pdeathsig=KILL --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
"""


@dataclass
class Pod:
    """A pod that runs or has run.

    Args:
        manifest: With its name, labels and annotations.
        endpoint: As the network sees it.
        process: Of its container.
        folder: Holds its log and what it writes.
        conditions: Types of the conditions that are true.
    """

    manifest: dict[str, Any]
    endpoint: Endpoint
    process: subprocess.Popen[bytes]
    folder: Path
    conditions: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """Of the pod."""
        return str(self.manifest["metadata"]["name"])

    @property
    def container(self) -> dict[str, Any]:
        """The only container."""
        (container,) = self.manifest["spec"]["containers"]
        return dict(container)

    def exit_code(self) -> int | None:
        """As Kubernetes reports it: 128 and the signal where one ended the container."""
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def log(self) -> str:
        """What the container has printed."""
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """Ends the container at once, as a lack of memory does."""
        self.process.kill()
        self.process.wait()

    def evict(self) -> None:
        """Takes the pod away as a node that goes down does."""
        self.conditions.add("DisruptionTarget")
        self.terminate()

    def terminate(self) -> None:
        """SIGTERM, then SIGKILL after the grace period."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self.manifest["spec"]["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            self.kill()

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the container, as an exec probe and a port-forward do."""
        inside = [*entering(self.process.pid), "--", *command]
        return subprocess.run(inside, capture_output=True, text=True, timeout=60, check=False)


def start(node: Node, manifest: dict[str, Any], endpoint: Endpoint, folder: Path, image: Path, hosts: Path,
          more: Mapping[str, str]) -> Pod:  # fmt: skip
    """Starts the container of a pod.

    Args:
        node: Has the pod's network already.
        manifest: Of the pod.
        endpoint: Of the pod.
        folder: New; for the pod's files.
        image: Folder whose `bin` holds the commands of the image.
        hosts: Names that the cluster's DNS knows; may change while the pod runs.
        more: Variables of the image.
    """
    (container,) = manifest["spec"]["containers"]
    _check(manifest["spec"], container)
    (folder / "tmp").mkdir(parents=True)
    kept = {str(path) for path in (CHECKOUT, image, Path(sys.prefix), Path(sys.base_prefix))}
    enter = [
        "unshare",
        "--mount",
        "--",
        "sh",
        "-c",
        ENTER,
        "sh",
        str(folder),
        str(hosts),
        *sorted(kept),
        "--",
    ]
    command = [
        *node.inside(manifest["metadata"]["name"]),
        *enter,
        container["workingDir"],
        *container["command"],
    ]
    path = f"{image / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin"
    values = {"PATH": path, **more, **environment(manifest, endpoint)}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command, env=values, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    return Pod(manifest, endpoint, process, folder)


def _check(spec: dict[str, Any], container: dict[str, Any]) -> None:
    """What `ENTER` does for every pod has to be what the manifest asks for."""
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert "envFrom" not in container
    assert spec["shareProcessNamespace"], "the container's process is not process 1 here"
    assert spec["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]


def environment(manifest: dict[str, Any], endpoint: Endpoint) -> dict[str, str]:
    """Variables of the container: those of the kubelet, then the manifest's with fields and references filled in."""
    (container,) = manifest["spec"]["containers"]
    values = {
        "HOSTNAME": endpoint.host or manifest["metadata"]["name"],
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    for each in container.get("env", []):
        text = each["value"] if "value" in each else _field(each["valueFrom"], manifest, endpoint)
        values[each["name"]] = _expanded(text, values)
    return values


def _field(source: dict[str, Any], manifest: dict[str, Any], endpoint: Endpoint) -> str:
    path = source["fieldRef"]["fieldPath"]
    if path == "status.podIP":
        return endpoint.address
    about = manifest["metadata"]
    if found := re.fullmatch(r"metadata\.(annotations|labels)\['(.+)'\]", path):
        return str(about[found[1]][found[2]])
    return str(about[re.fullmatch(r"metadata\.(name|namespace)", path)[1]])  # type: ignore[index]


def _expanded(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the value of a variable set before, `$$` a dollar; an unknown name stays as it is."""
    return re.sub(
        r"\$\$|\$\(([A-Za-z_]\w*)\)",
        lambda found: "$" if found[0] == "$$" else values.get(found[1], found[0]),
        text,
    )


def wait_until(what: str, happens: Any, seconds: float, pause: float = 0.1) -> None:
    """Waits for something, and says what if it does not come."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(pause)
