"""The machine under the pods: a bridge and one network namespace for each pod, in namespaces of their own.

Nothing reaches the machine's own network, and everything is gone when the process that made it ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

TOOLS = {"ip": "iproute2", "nft": "nftables", "nsenter": "util-linux", "setpriv": "util-linux"}
GATEWAY = "10.77.0.1"
SET_UP = f"""
set -e
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add bridge type bridge
ip addr add {GATEWAY}/16 dev bridge
ip link set bridge up
echo ready
exec cat
"""


def entering(pid: int) -> list[str]:
    """Prefix of commands that see the network and the files of a process."""
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return ["nsenter", f"--target={pid}", *user, "--net", "--mount"]


class Node:
    """Namespaces that live as long as the process `pid`."""

    def __init__(self, pid: int) -> None:
        self.prefix = entering(pid)
        self._count = 1

    def run(self, *command: str, text: str | None = None) -> str:
        """Runs a command beside the pods, and returns what it prints."""
        return _checked([*self.prefix, *command], text)

    def add(self, name: str) -> str:
        """A namespace on the bridge; returns its address."""
        self._count += 1
        high, low = divmod(self._count, 256)
        address, outside = f"10.77.{high}.{low}", f"pod{self._count}"
        self.run("ip", "netns", "add", name)
        self.run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        self.run("ip", "link", "set", outside, "master", "bridge", "up")
        self.run("ip", "-n", name, "addr", "add", f"{address}/16", "dev", "eth0")
        for device in ("lo", "eth0"):
            self.run("ip", "-n", name, "link", "set", device, "up")
        return address

    def remove(self, name: str) -> None:
        """Takes the namespace's cable away, as when a pod is gone."""
        self.run("ip", "-n", name, "link", "delete", "eth0")
        self.run("ip", "netns", "delete", name)

    def inside(self, name: str) -> list[str]:
        """Prefix of commands that run in the network of `name`."""
        return [*self.prefix, "nsenter", f"--net=/run/netns/{name}"]

    def set_rules(self, name: str, rules: str) -> None:
        """Replaces the packet filter of `name` in one act."""
        _checked([*self.inside(name), "nft", "-f", "-"], rules)


@contextmanager
def node() -> Iterator[Node]:
    """A node with nothing on it."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", "--mount", "--", "sh", "-c", SET_UP]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        answer = holder.stdout.readline()
        if answer != "ready\n":
            holder.kill()
            raise RuntimeError(
                "This test needs network namespaces: run it as root, or where users may make namespaces, but: "
                + answer.strip()
            )
        try:
            yield Node(holder.pid)
        finally:
            holder.stdin.close()


def missing_tools() -> str:
    """What keeps a machine from having a node, with the way out; empty where it can."""
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    return f"This test needs tools of the system: apt-get install {' '.join(missing)}" if missing else ""


def _checked(command: Sequence[str], text: str | None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} left with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout
