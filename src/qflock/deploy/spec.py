"""What is to be run, as one validated object: the same for a laptop and a cluster."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from qflock.training.spec import RunSpec

Kind = Literal["indexed-job", "jobset", "tfjob"]
DnsLabel = Annotated[str, Field(max_length=40, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
SecretName = Annotated[
    str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
]
NamespaceLabel = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
LabelKey = Annotated[
    str,
    Field(
        max_length=253,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    ),
]
LabelValue = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
VariableText = Annotated[str, Field(pattern=r"^[^\x00]*$")]
BUCKET_PATH = re.compile(r"(gs|s3)://[a-z0-9][-a-z0-9_.]{1,220}[a-z0-9](/[A-Za-z0-9._=@+ -]+)*/?")
YEAR = 366 * 86400
Port = Annotated[int, Field(ge=1024, le=65535)]
RESERVED = {
    "TF_CONFIG",
    "QFLOCK_THREADS",
    "QFLOCK_INDEX",
    "QFLOCK_PROFILER_PORT",
    "QFLOCK_SUPERVISION",
    "HOME",
}
SHARED = ("epochs", "batch_size", "learning_rate", "seed", "checkpoint_seconds", "keep")
MEMORY_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
MEMORY_PATTERN = r"^[0-9]+(\.[0-9]+)?(K|M|G|T|Ki|Mi|Gi|Ti)?$"


class Section(BaseModel):
    """A table of the job file: unknown keys and wrong types are refused, and it never changes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Experiment(Section):
    """What is trained; the keys are those of `qflock train`."""

    what: str = Field(default="qcnn", description="`qcnn`, or `file.py:name` of a file that is in the image.")
    architecture: str = Field(default="hybrid", description="Of the QCNN: hybrid, multi-filter or full.")
    qubits: int = Field(default=8, ge=4)
    examples: int = Field(default=160, ge=1)
    epochs: int = Field(default=50, ge=1)
    batch_size: int = Field(default=32, ge=1, description="Examples of one step, over all workers together.")
    learning_rate: float = Field(default=0.02, gt=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0)
    checkpoint_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    keep: int = Field(default=3, ge=1)

    @model_validator(mode="after")
    def _fits_training(self) -> Experiment:
        if self.what != "qcnn" and not re.fullmatch(r"[^-:][^:]*:[A-Za-z_]\w*", self.what):
            raise ValueError(f"must be 'qcnn' or 'path/to/file.py:name', but is {self.what!r}")
        self.run_spec()
        return self

    def run_spec(self) -> RunSpec:
        """The same request as the training layer knows it."""
        ready = self.what == "qcnn"
        arguments = (
            {"architecture": self.architecture, "qubits": self.qubits, "examples": self.examples}
            if ready
            else {}
        )
        shared = {key: getattr(self, key) for key in SHARED}
        return RunSpec(self.what, arguments, **shared)

    def arguments(self) -> list[str]:
        """Arguments of `qflock train`, without the run."""
        spec = self.run_spec()
        values: dict[str, Any] = spec.arguments | {key: getattr(spec, key) for key in SHARED}
        return [spec.what, *(f"--{key.replace('_', '-')}={value}" for key, value in values.items())]


class Resources(Section):
    """Of one worker; requests and limits are the same, so that no neighbour slows a step."""

    cpu: int = Field(default=2, ge=1, le=1024, description="Cores; QFLOCK_THREADS follows.")
    memory: str = Field(default="4Gi", pattern=MEMORY_PATTERN, description="For instance 4Gi.")

    @property
    def memory_bytes(self) -> int:
        """The memory in bytes."""
        number = self.memory.rstrip("KMGTi")
        return math.floor(float(number) * MEMORY_UNITS[self.memory[len(number) :]])


class Toleration(Section):
    """A node taint that the workers accept."""

    key: LabelKey
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    @model_validator(mode="after")
    def _value_fits(self) -> Toleration:
        if self.operator == "Exists" and self.value:
            raise ValueError(f"must have no value where the operator is Exists, but has {self.value!r}")
        return self


class Schedule(Section):
    """Where the workers may run."""

    spot: bool = Field(
        default=False, description="On nodes that may be taken away at any moment, at a lower price."
    )
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    tolerations: list[Toleration] = Field(default_factory=list)


class Limits(Section):
    """When the cluster gives up, and when it tidies up."""

    restarts: int = Field(
        default=6, ge=0, le=1000, description="Failures, preemptions aside, before the job fails."
    )
    deadline_seconds: int = Field(default=86400, ge=1, le=YEAR)
    start_seconds: int = Field(
        default=3600,
        ge=60,
        le=YEAR,
        description="Longest time to a worker's first step, while it starts, meets the others and compiles.",
    )
    stall_seconds: int = Field(
        default=3600,
        ge=60,
        le=YEAR,
        description="A worker that ends no step for this long is killed and replaced.",
    )
    keep_seconds: int = Field(
        default=86400, ge=0, le=YEAR, description="A finished job is deleted after this time."
    )


class Google(Section):
    """Where `qflock infra` makes the cluster and the bucket."""

    project: str = Field(pattern=r"^[a-z][-a-z0-9]{4,28}[a-z0-9]$")
    location: str = Field(
        default="us-central1-a", pattern=r"^[a-z]+-[a-z]+[0-9]+(-[a-z])?$", description="A region or a zone."
    )
    cluster: DnsLabel = "qflock"
    machine_type: str = Field(default="n2-standard-4", pattern=r"^[a-z0-9]+(-[a-z0-9]+)+$")
    max_nodes: int = Field(default=8, ge=1, le=1000)


class JobSpec(Section):
    """A job.

    Example:
        >>> JobSpec(name="first", store="gs://my-bucket/first").addresses()
        ('first-0.first:2222', 'first-1.first:2222')
    """

    name: DnsLabel
    store: str = Field(
        default="", description="Folder or URL (gs://, s3://) of the run; a cluster needs a URL."
    )
    kind: Kind = "indexed-job"
    namespace: NamespaceLabel = "default"
    workers: int = Field(default=2, ge=1, le=1000)
    image: str = Field(default="qflock:latest", min_length=1, pattern=r"^\S+$")
    tensorboard_image: str = Field(default="qflock-tensorboard:latest", min_length=1, pattern=r"^\S+$")
    tensorboard: bool = True
    service_account: DnsLabel | None = Field(
        default=None, description="An account that exists; by default the job makes one of its own name."
    )
    secret: SecretName | None = Field(
        default=None,
        description="A Secret that exists; its keys, such as AWS_ACCESS_KEY_ID, become variables of workers and inference.",
    )
    viewer_secret: SecretName | None = Field(
        default=None, description="The same for TensorBoard, with keys that may only read."
    )
    port: Port = 2222
    profiler_port: Port = 2223
    experiment: Experiment = Experiment()
    resources: Resources = Resources()
    schedule: Schedule = Schedule()
    limits: Limits = Limits()
    environment: dict[VariableName, VariableText] = Field(
        default_factory=dict, description="Further variables of workers."
    )
    google: Google | None = None

    @field_validator("store")
    @classmethod
    def _a_place(cls, value: str) -> str:
        remote = value.startswith(("gs://", "s3://"))
        if remote and (not BUCKET_PATH.fullmatch(value) or ".." in value.split("/")):
            raise ValueError(f"must be gs://BUCKET/FOLDER or s3://BUCKET/FOLDER, but is {value!r}")
        return value

    @field_validator("service_account")
    @classmethod
    def _not_default(cls, value: str | None) -> str | None:
        if value == "default":
            raise ValueError("must be an account of the job's own, since others use 'default' too")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> JobSpec:
        if self.port == self.profiler_port:
            raise ValueError(f"port and profiler_port must differ, but both are {self.port}")
        reserved = sorted(RESERVED & set(self.environment))
        if reserved:
            raise ValueError(f"environment must not set {', '.join(reserved)}, which the job sets itself")
        return self

    @property
    def account(self) -> str:
        """The service account that writes the store."""
        return self.service_account or self.name

    def addresses(self) -> tuple[str, ...]:
        """`host:port` of every worker, as the cluster's DNS knows it."""
        stem = f"{self.name}-workers-0" if self.kind == "jobset" else self.name
        return tuple(f"{stem}-{index}.{self.name}:{self.port}" for index in range(self.workers))
