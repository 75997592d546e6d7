"""What a job's infrastructure costs, from a table with a date and sources: an estimate, never a quotation."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError

from qflock.deploy.google_cloud import Place, place_of
from qflock.deploy.machines import SYSTEM_DISK_GIB, SYSTEM_MACHINE, WORKER_DISK_GIB, machine_shape
from qflock.deploy.spec import JobSpec, Section
from qflock.errors import ConfigurationError

HOURS_PER_MONTH = 730
ZONES_OF_A_REGION = 3


class Machine(Section):
    """Dollars per vCPU and hour, memory included."""

    on_demand: float = Field(ge=0, allow_inf_nan=False)
    spot: float = Field(ge=0, allow_inf_nan=False)


class Prices(Section):
    """The table: dollars per hour, or per GiB and month."""

    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    sources: list[str] = Field(min_length=1)
    cluster_hour: float = Field(ge=0, allow_inf_nan=False)
    disk_gib_month: float = Field(ge=0, allow_inf_nan=False)
    bucket_gib_month: float = Field(ge=0, allow_inf_nan=False)
    images_gib_month: float = Field(ge=0, allow_inf_nan=False)
    machines: dict[str, dict[str, Machine]]

    def node_hour(self, machine_type: str, region: str, spot: bool, disk_gib: int) -> float | None:
        """Dollars of one node and hour with its disk; None for a machine that is not in the table."""
        shape = machine_shape(machine_type)
        price = self.machines.get(region, {}).get(shape.kind) if shape else None
        if shape is None or price is None:
            return None
        disk = disk_gib * self.disk_gib_month / HOURS_PER_MONTH
        return shape.cores * (price.spot if spot else price.on_demand) + disk


def read_prices(path: str | None = None) -> Prices:
    """The table in a file, or the one that comes with qflock.

    Raises:
        ConfigurationError: If the file cannot be read or is no such table.

    Example:
        >>> read_prices().cluster_hour
        0.1
    """
    source = Path(path) if path else files("qflock.deploy").joinpath("prices.toml")
    try:
        return Prices.model_validate(tomllib.loads(source.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"Prices file {source} must be TOML text, but cannot be read: {error}"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "file"
        raise ConfigurationError(
            f"Prices file {source}: key `{key}`: {first['msg']}; start from a copy of the built-in prices.toml"
        ) from None


@dataclass(frozen=True)
class Estimate:
    """Dollars per hour; None where the table lacks a machine.

    Args:
        place: Where.
        prices: From which table.
        nodes: Worker nodes that the job needs; None where the machine type does not tell.
        standing: Cluster and system nodes, as long as they exist.
        node: One worker node.
    """

    place: Place
    prices: Prices
    nodes: int | None
    standing: float | None
    node: float | None

    def lines(self) -> list[str]:
        """The estimate as text."""
        google, prices = self.place.google, self.prices
        training = None if self.nodes is None or self.node is None else self.nodes * self.node
        most = None if self.node is None else google.max_nodes * self.node
        together = None if self.standing is None or training is None else self.standing + training
        return [
            f"Estimate, US dollars without tax, prices of {prices.date}; the real bill differs.",
            f"  cluster and system node, as long as they exist  {_hour(self.standing)}",
            f"  {self.nodes or '?'} worker nodes while the job trains{'':15}{_hour(training)}",
            f"  both together{'':35}{_hour(together)}",
            f"  at most ({google.max_nodes} worker nodes){'':{24 - len(str(google.max_nodes))}}{_hour(most)} more",
            f"  bucket {prices.bucket_gib_month:.3f} and images {prices.images_gib_month:.3f} per GiB and month",
            *(
                ["  not in the table: this machine type or region; give --prices FILE"]
                if together is None
                else []
            ),
            *(f"  source: {source}" for source in prices.sources),
        ]


def estimate(job: JobSpec, prices: Prices) -> Estimate:
    """What the job's infrastructure costs."""
    place = place_of(job)
    google = place.google
    shape = machine_shape(google.machine_type)
    system = prices.node_hour(SYSTEM_MACHINE, place.region, spot=False, disk_gib=SYSTEM_DISK_GIB)
    copies = ZONES_OF_A_REGION if place.regional else 1
    return Estimate(
        place,
        prices,
        nodes=math.ceil(job.workers / shape.workers(job.resources)) if shape else None,
        standing=None if system is None else prices.cluster_hour + copies * system,
        node=prices.node_hour(google.machine_type, place.region, job.schedule.spot, WORKER_DISK_GIB),
    )


def _hour(dollars: float | None) -> str:
    return "?" if dollars is None else f"{dollars:.3f} per hour"
