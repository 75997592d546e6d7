"""A cluster of one node: takes manifests, runs their pods, keeps names and rules up to date."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from gcp_storage_emulator.settings import STORAGE_DIR

import qflock
from tests.deploy.small_cluster import kubelet
from tests.deploy.small_cluster.job_controller import JobController
from tests.deploy.small_cluster.node import GATEWAY, Node, node
from tests.deploy.small_cluster.rules import Endpoint, names, packet_filter

# The package that runs these tests, be it installed or a folder of sources.
INSTALLED = Path(qflock.__file__).parents[1]

Manifest = dict[str, Any]
BUCKET_PORT = 9023
# What the image of this project would hold: its commands. TensorBoard's image has no TensorFlow.
COMMANDS = {
    "qflock": 'exec "{python}" -m qflock.cli "$@"',
    "tensorboard": 'export PYTHONPATH="{image}/without-tensorflow"; exec "{python}" -m tensorboard.main "$@"',
}


class Cluster:
    """Pods, their names and their rules; `buckets` holds the objects of the bucket as files.

    Args:
        node: Has no pods yet.
        folder: For logs, for the files of pods, and for the bucket.
    """

    def __init__(self, node: Node, folder: Path) -> None:
        self._node, self._folder = node, folder
        self._services: list[Manifest] = []
        self._policies: list[Manifest] = []
        self._endpoints: dict[str, Endpoint] = {}
        self.pods: list[kubelet.Pod] = []
        self.image = _image(folder / "image")
        self.hosts = folder / "hosts"
        self.buckets = folder / "buckets" / STORAGE_DIR
        self.environment = {
            "PYTHONPATH": str(INSTALLED),
            "STORAGE_EMULATOR_HOST": f"http://{GATEWAY}:{BUCKET_PORT}",
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }

    def submit(self, text: str) -> list[JobController]:
        """Takes YAML documents; returns the controllers of the Jobs among them."""
        jobs = []
        for each in yaml.safe_load_all(text):
            match each["kind"]:
                case "Service":
                    self._services.append(each)
                case "NetworkPolicy":
                    self._policies.append(each)
                case "Job":
                    jobs.append(JobController(each, self.start, self.remove))
                case "Deployment":
                    self.start(_first_pod(each))
                case "ServiceAccount":
                    pass  # the emulated bucket lets everybody in
                case kind:
                    raise ValueError(f"this cluster does not know {kind}")
        return jobs

    def start(self, manifest: Manifest) -> kubelet.Pod:
        """Starts a pod, with its name and its rules in force before its container runs."""
        about, spec = manifest["metadata"], manifest["spec"]
        endpoint = self.join(about["name"], about["labels"], about["namespace"],
                             spec.get("hostname", ""), spec.get("subdomain", ""))  # fmt: skip
        folder = self._folder / about["name"]
        pod = kubelet.start(self._node, manifest, endpoint, folder, self.image, self.hosts, self.environment)
        self.pods.append(pod)
        return pod

    def join(
        self, name: str, labels: dict[str, str], namespace: str, host: str = "", subdomain: str = ""
    ) -> Endpoint:
        """Gives a pod its address; also one without a container, to look at the others from."""
        endpoint = Endpoint(self._node.add(name), namespace, labels, host, subdomain)
        self._endpoints[name] = endpoint
        self._refresh()
        return endpoint

    def remove(self, pod: kubelet.Pod) -> None:
        """Takes an ended pod off the network."""
        del self._endpoints[pod.name]
        self._node.remove(pod.name)
        self._refresh()

    def run(self, job: JobController, state: str, seconds: float) -> None:
        """Lets a Job's controller act until the Job is in a state."""
        kubelet.wait_until(f"job is {state}", lambda: job.act() == state, seconds)

    def reaches(self, name: str, address: str, port: int) -> bool:
        """Whether the pod `name` can open a connection."""
        attempt = f"import socket; socket.create_connection(({address!r}, {port}), 1.5)"
        command = [*self._node.inside(name), sys.executable, "-S", "-c", attempt]
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0

    def stop(self) -> None:
        """Ends what still runs."""
        for pod in self.pods:
            if pod.exit_code() is None:
                pod.kill()

    def _refresh(self) -> None:
        known = self._endpoints.values()
        self.hosts.write_text(names(self._services, known))
        for name, endpoint in self._endpoints.items():
            self._node.set_rules(name, packet_filter(endpoint, self._policies, known))


@contextmanager
def cluster(folder: Path, bucket: str) -> Iterator[Cluster]:
    """A cluster without pods, beside a server that holds an empty bucket."""
    with node() as machine:
        here = Cluster(machine, folder)
        serve = [sys.executable, "-m", "gcp_storage_emulator", f"--data-dir={here.buckets.parent}", "start",
                 f"--host={GATEWAY}", f"--port={BUCKET_PORT}", f"--default-bucket={bucket}", "--quiet"]  # fmt: skip
        command = [*machine.prefix, "setpriv", "--pdeathsig=KILL", *serve]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as server:
            try:
                _wait_for_server(machine, server)
                yield here
            finally:
                here.stop()
                server.kill()


def _wait_for_server(machine: Node, server: subprocess.Popen[bytes]) -> None:
    probe = f"import socket; socket.create_connection(('{GATEWAY}', {BUCKET_PORT}), 1)"
    while server.poll() is None:
        command = [*machine.prefix, sys.executable, "-S", "-c", probe]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.2)
    raise RuntimeError(f"the emulated bucket ended with {server.returncode}")


def _first_pod(deployment: Manifest) -> Manifest:
    assert deployment["spec"]["replicas"] == 1
    about = deployment["metadata"]
    template = deployment["spec"]["template"]
    place = {"name": f"{about['name']}-0", "namespace": about["namespace"]}
    return {"kind": "Pod", "metadata": template["metadata"] | place, "spec": template["spec"]}


def _image(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    for name, text in COMMANDS.items():
        path = folder / "bin" / name
        path.write_text("#!/bin/sh\n" + text.format(python=sys.executable, image=folder) + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    absent = folder / "without-tensorflow" / "tensorflow"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text('raise ImportError("not in this image")\n')
    return folder
