"""Machines that a training may run on: this one, types that can be rented, and the four of the chart."""

from __future__ import annotations

from dataclasses import dataclass

from qflock.deploy.machines import GIB, WORKER_DISK_GIB, machine_shape
from qflock.deploy.prices import Prices
from qflock.errors import ConfigurationError


@dataclass(frozen=True)
class Node:
    """A machine that one worker has to itself.

    Args:
        name: Its type.
        threads: vCPUs.
        memory: Bytes that a worker may have.
        price: Dollars per hour; None where it is not known.
    """

    name: str
    threads: int
    memory: int
    price: float | None


@dataclass(frozen=True)
class Fleet:
    """Machines of the chart.

    Args:
        name: Of its line.
        workers: How many.
        threads: Of each.
        memory: Bytes of each.
    """

    name: str
    workers: int
    threads: int
    memory: int


FLEETS = (
    Fleet("one laptop", 1, 8, 16 * GIB),
    Fleet("one server", 8, 8, 32 * GIB),
    Fleet("32 nodes", 32, 8, 32 * GIB),
    Fleet("10,000 cores", 1250, 8, 32 * GIB),
)


def node_of(name: str, prices: Prices, region: str, spot: bool, price: float | None) -> Node:
    """A node by the name of its type.

    Args:
        name: Such as `n2-standard-8`.
        prices: The table.
        region: Of the cloud.
        spot: Whether it may be taken away.
        price: Dollars per hour that replace those of the table.

    Raises:
        ConfigurationError: If the name does not tell how much memory there is, or the region is not in the table.
    """
    shape = machine_shape(name)
    memory = shape.free_gib if shape else None
    if shape is None or memory is None:
        known = ", ".join(sorted(f"{kind}-8" for kind in prices.machines[min(prices.machines)]))
        raise ConfigurationError(
            f"Option --node-type must be a standard type, such as {known}, but is {name!r}"
        )
    if region not in prices.machines and price is None:
        raise ConfigurationError(
            f"Option --region must be one of {', '.join(sorted(prices.machines))}, but is {region!r}; "
            "or give --price-per-hour"
        )
    table = prices.node_hour(name, region, spot, WORKER_DISK_GIB)
    return Node(name, shape.cores, int(memory * GIB), table if price is None else price)
