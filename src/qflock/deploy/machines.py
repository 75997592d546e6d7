"""What fits on a node: the part of a machine that the cluster leaves to pods."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qflock.deploy.spec import Resources

SYSTEM_MACHINE, SYSTEM_DISK_GIB, WORKER_DISK_GIB = "e2-standard-2", 30, 50
GIB = 1 << 30
STANDARD_GIB_PER_CORE = 4
# Daemon sets of the cluster ask for about this much on every node.
DAEMON_CORES, DAEMON_GIB = 0.4, 0.5
EVICTION_GIB = 0.1


@dataclass(frozen=True)
class Shape:
    """A machine type.

    Args:
        kind: Family and shape, such as `n2-standard`.
        cores: Its vCPUs.
    """

    kind: str
    cores: int

    @property
    def free_cores(self) -> float:
        """Cores for pods, after what Google Kubernetes Engine reserves: 6% of the first, 1% of the second, and so on."""
        reserved = sum((0.06, 0.01, 0.005, 0.005)[: self.cores]) + 0.0025 * max(0, self.cores - 4)
        return self.cores - reserved - DAEMON_CORES

    @property
    def free_gib(self) -> float | None:
        """Memory for pods, after the reserved part; None where the shape does not say how much there is."""
        if not self.kind.endswith("-standard"):
            return None
        total = float(self.cores * STANDARD_GIB_PER_CORE)
        reserved, rest = EVICTION_GIB, total
        for size, share in ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (float("inf"), 0.02)):
            part = min(rest, size)
            reserved, rest = reserved + share * part, rest - part
        return total - reserved - DAEMON_GIB

    def workers(self, resources: Resources) -> int:
        """How many workers fit on one node."""
        fitting = int(self.free_cores // resources.cpu)
        memory = self.free_gib
        return fitting if memory is None else min(fitting, int(memory * GIB // resources.memory_bytes))

    def usable(self) -> str:
        """What pods can have, for the reader."""
        memory = self.free_gib
        return f"{self.free_cores:.1f} cores" + (f" and {memory:.1f} GiB" if memory is not None else "")


def machine_shape(machine_type: str) -> Shape | None:
    """The shape that a machine type's name tells, or None for one that tells none.

    Example:
        >>> machine_shape("n2-standard-4")
        Shape(kind='n2-standard', cores=4)
        >>> machine_shape("e2-medium") is None
        True
    """
    match = re.fullmatch(r"([a-z0-9]+-(?:standard|highmem|highcpu))-([0-9]+)", machine_type)
    return Shape(match[1], int(match[2])) if match else None
