"""Machines for tests: network namespaces with an address each, on a switch of their own that can cut one off.

Everything is inside of namespaces, also the switch: nothing of the machine's own network is touched, and any number of
tests can have their networks at the same time with the same addresses.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Machines on one switch.

    Args:
        switch: Namespace of the switch.
        machines: Namespace of each machine.
        addresses: Address of each machine, which the others reach.
    """

    switch: str
    machines: tuple[str, ...]
    addresses: tuple[str, ...]

    def command(self, machine: int, command: Sequence[str]) -> list[str]:
        """The command that runs `command` on a machine; the process it starts becomes the command itself."""
        return ["ip", "netns", "exec", self.machines[machine], *command]

    def cut(self, machine: int) -> None:
        """From now on no packet passes between this machine and the others; nobody is told."""
        _ip("-n", self.switch, "link", "set", f"port{machine}", "nomaster")

    def mend(self, machine: int) -> None:
        """Undoes `cut`."""
        _ip("-n", self.switch, "link", "set", f"port{machine}", "master", "switch")


def reason_for_none() -> str | None:
    """Why this machine cannot have such networks, or None where it can."""
    if shutil.which("ip") is None:
        return "the command `ip` is missing (Debian: apt-get install iproute2)"
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    try:
        with network(1):
            return None
    except subprocess.CalledProcessError as error:
        return f"`{' '.join(error.cmd)}` fails: {error.stderr.strip()}"


@contextmanager
def network(machines: int) -> Iterator[Network]:
    """Makes a network, and removes it with all that still runs in it."""
    token = secrets.token_hex(4)
    names = tuple(f"qflock-{token}-{machine}" for machine in range(machines))
    made = Network(f"qflock-{token}-switch", names, tuple(f"10.77.0.{k + 1}" for k in range(machines)))
    try:
        _ip("netns", "add", made.switch)
        _ip("-n", made.switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", made.switch, "link", "set", "switch", "up")
        for machine, (name, address) in enumerate(zip(made.machines, made.addresses, strict=True)):
            port = f"port{machine}"
            _ip("netns", "add", name)
            _ip("-n", made.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", made.switch, "link", "set", port, "master", "switch", "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", name, "link", "set", device, "up")
        yield made
    finally:
        _remove(made)


def _remove(made: Network) -> None:
    known = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for name in (*made.machines, made.switch):
        if name in known:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
            for pid in pids.stdout.split():
                subprocess.run(["kill", "-9", pid], capture_output=True, check=False)
            _ip("netns", "delete", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
