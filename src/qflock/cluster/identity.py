"""Which worker this process is, from TF_CONFIG."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from qflock.errors import ConfigurationError


@dataclass(frozen=True)
class Identity:
    """One worker of a cluster.

    Args:
        addresses: `host:port` of every worker.
        index: Which of them this one is; 0 is the chief.
    """

    addresses: tuple[str, ...] = ("localhost:0",)
    index: int = 0

    @property
    def count(self) -> int:
        """How many workers there are."""
        return len(self.addresses)

    @property
    def chief(self) -> bool:
        """Whether this is worker 0."""
        return self.index == 0

    def tf_config(self) -> str:
        """The value of TF_CONFIG for this worker."""
        return json.dumps(
            {"cluster": {"worker": list(self.addresses)}, "task": {"type": "worker", "index": self.index}}
        )


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 host stands in brackets."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigurationError(f"TF_CONFIG must list workers as 'host:port', but has {address!r}")
    return host.strip("[]"), int(port)


def identity_from(environment: Mapping[str, str] = os.environ) -> Identity | None:
    """The identity that TF_CONFIG gives, or None where it is not set or empty.

    Raises:
        ConfigurationError: If TF_CONFIG is set, but wrong.

    Example:
        >>> identity_from({"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"index": 1}}'})
        Identity(addresses=('a:1', 'b:1'), index=1)
    """
    text = environment.get("TF_CONFIG", "").strip()
    if not text:
        return None
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        groups = {role: list(members) for role, members in cluster.items()}
        role, index = task.get("type", "worker"), int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            "TF_CONFIG must be JSON with cluster.worker (a list of 'host:port') and task.index, "
            f"but cannot be read ({error!r}): {text[:120]}"
        ) from None
    return _checked(groups, role, index)


def _checked(groups: dict[str, list[str]], role: str, index: int) -> Identity:
    unknown = sorted(set(groups) - {"chief", "worker"})
    if unknown:
        raise ConfigurationError(
            f"TF_CONFIG must only name 'chief' and 'worker', but names {', '.join(unknown)}"
        )
    if role not in groups or not 0 <= index < len(groups[role]):
        sizes = ", ".join(f"{len(members)} {name}" for name, members in groups.items()) or "nobody"
        raise ConfigurationError(
            f"TF_CONFIG must name a task of its cluster, but names {role} {index} where there is {sizes}"
        )
    chiefs = groups.get("chief", [])
    addresses = (*chiefs, *groups.get("worker", []))
    for address in addresses:
        split_address(address)
    if len(set(addresses)) < len(addresses):
        raise ConfigurationError(
            f"TF_CONFIG must give each worker an address of its own, but has {', '.join(addresses)}"
        )
    return Identity(addresses, index if role == "chief" else len(chiefs) + index)
