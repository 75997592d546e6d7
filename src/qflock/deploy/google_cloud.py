"""What a job needs on Google Cloud, as steps that are data: how to look, what must be there, how to make and remove it.

Nothing here runs anything; `infrastructure` runs the steps, and `plan` prints them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qflock.deploy.companions import viewer_account
from qflock.deploy.machines import SYSTEM_DISK_GIB, SYSTEM_MACHINE, WORKER_DISK_GIB, machine_shape
from qflock.deploy.pods import GKE_SPOT, MANAGER
from qflock.deploy.spec import Google, JobSpec
from qflock.errors import ConfigurationError

Command = tuple[str, ...]
APIS = ("artifactregistry", "compute", "container", "iam", "storage")
POOL = "workers"
OWN_LABEL = f"managed-by={MANAGER}"
UNKNOWN_NUMBER = "PROJECT_NUMBER"
ACCOUNT_NAME_LIMIT = 30


@dataclass(frozen=True)
class Found:
    """What a look found.

    Args:
        there: Whether the thing exists, as far as the step wants it.
        own: Whether qflock made it, so that `down` may remove it.
        busy: What it is busy with (being made, being removed), or "".
        wrong: Why it cannot be used, or "".
    """

    there: bool = True
    own: bool = True
    busy: str = ""
    wrong: str = ""


ABSENT = Found(there=False)


@dataclass(frozen=True)
class Step:
    """One thing that a job needs.

    Args:
        name: What it is, for the reader.
        look: Command whose JSON says what is there; an answer "not found" is no error.
        judge: From that JSON to what it means.
        make: Commands that make it.
        undo: Commands that take back the first of several, should a later one fail.
        remove: Commands that remove it; empty where nothing needs to be.
        gone_with: Name of the step whose removal removes this too.
        holds_runs: Whether removing it loses what was trained.
        costs: Whether it costs money while it exists.
        minutes: How long making it takes, roughly.
        permission: What the account needs to make it.
    """

    name: str
    look: Command
    judge: Callable[[Any], Found]
    make: tuple[Command, ...]
    permission: str
    undo: tuple[Command, ...] = ()
    remove: tuple[Command, ...] = ()
    gone_with: str = ""
    holds_runs: bool = False
    costs: bool = False
    minutes: int = 0


@dataclass(frozen=True)
class Place:
    """Names on Google Cloud that follow from a job.

    Args:
        google: The job file's section.
        bucket: `gs://name` of the store's bucket.
    """

    google: Google
    bucket: str

    @property
    def region(self) -> str:
        """The region, also where the location is a zone."""
        return "-".join(self.google.location.split("-")[:2])

    @property
    def regional(self) -> bool:
        """Whether the cluster spans the zones of a region."""
        return self.google.location == self.region

    @property
    def node_account(self) -> str:
        """The account of the nodes, which may pull images and nothing else."""
        return f"{self.google.cluster}-nodes@{self.google.project}.iam.gserviceaccount.com"

    @property
    def registry(self) -> str:
        """Where images go."""
        return f"{self.region}-docker.pkg.dev/{self.google.project}/{self.google.cluster}"

    @property
    def cluster_name(self) -> str:
        """The cluster, for the reader."""
        return f"cluster {self.google.cluster} in {self.google.location}"

    @property
    def bucket_name(self) -> str:
        """The bucket, for the reader."""
        return f"bucket {self.bucket} in {self.region}"


def place_of(job: JobSpec) -> Place:
    """The names of a job's things.

    Raises:
        ConfigurationError: If the job has no Google Cloud section, or one that cannot work.

    Example:
        >>> job = JobSpec(name="first", store="gs://runs/first", google=Google(project="my-project"))
        >>> place_of(job).registry
        'us-central1-docker.pkg.dev/my-project/qflock'
    """
    google = job.google
    if google is None:
        raise ConfigurationError(
            'Google Cloud needs a section [google] in the job file with a `project`, but there is none: add [google] and project = "..."'
        )
    bucket = job.store.removeprefix("gs://").partition("/")[0]
    if not job.store.startswith("gs://") or not bucket:
        raise ConfigurationError(f"Key `store` must be gs://BUCKET/... on Google Cloud, but is {job.store!r}")
    if len(f"{google.cluster}-nodes") > ACCOUNT_NAME_LIMIT:
        raise ConfigurationError(
            f"Key `google.cluster` must have at most {ACCOUNT_NAME_LIMIT - len('-nodes')} characters, "
            f"since an account is named after it, but is {google.cluster!r}"
        )
    _check_nodes(job, google)
    return Place(google, f"gs://{bucket}")


def _check_nodes(job: JobSpec, google: Google) -> None:
    shape = machine_shape(google.machine_type)
    if shape is None:
        return
    fitting = shape.workers(job.resources)
    if fitting == 0:
        raise ConfigurationError(
            f"A worker must fit on a node, but {job.resources.cpu} cores and {job.resources.memory} are more than "
            f"pods can have on {google.machine_type} ({shape.usable()}); choose a larger google.machine_type"
        )
    needed = math.ceil(job.workers / fitting)
    if needed > google.max_nodes:
        raise ConfigurationError(
            f"Key `google.max_nodes` must be at least {needed} for {job.workers} workers, {fitting} on a "
            f"{google.machine_type}, but is {google.max_nodes}"
        )


def steps(job: JobSpec, number: str = UNKNOWN_NUMBER) -> list[Step]:
    """All that the job needs, in the order in which it is made.

    Args:
        job: The job.
        number: The project's number, which the names of Kubernetes accounts hold.

    Raises:
        ConfigurationError: If the job has no Google Cloud section, or one that cannot work.
    """
    place = place_of(job)
    access = [_access(job, place, number, job.account, "objectUser")]
    if job.tensorboard:
        access.append(_access(job, place, number, viewer_account(job), "objectViewer"))
    return [
        _apis(place),
        _registry(place),
        _node_account(place),
        _pull(place),
        _cluster(place),
        _pool(job, place),
        _bucket(place),
        *access,
    ]


def project_command(google: Google) -> Command:
    """Asks for the project, which has the number."""
    return _gcloud(google, "projects", "describe", google.project)[:-1]


def credentials_command(google: Google) -> Command:
    """Writes the kubeconfig that `qflock deploy` reads."""
    return _gcloud(google, "container", "clusters", "get-credentials", google.cluster, _at(google))


def _gcloud(google: Google, *words: str) -> Command:
    return (*words, f"--project={google.project}")


def _at(google: Google) -> str:
    return f"--location={google.location}"


def _labels(found: Any) -> bool:
    return bool((found or {}).get("managed-by") == MANAGER)


def _apis(place: Place) -> Step:
    names = [f"{each}.googleapis.com" for each in APIS]

    def judge(enabled: Any) -> Found:
        there = {each["config"]["name"] for each in enabled or []}
        return Found(there=set(names) <= there)

    return Step(
        name="APIs " + ", ".join(APIS),
        look=_gcloud(place.google, "services", "list", "--enabled"),
        judge=judge,
        make=(_gcloud(place.google, "services", "enable", *names),),
        permission="serviceusage.services.enable",
        minutes=1,
    )


def _registry(place: Place) -> Step:
    google = place.google

    def command(verb: str, *words: str) -> Command:
        parts = ("artifacts", "repositories", verb, google.cluster, f"--location={place.region}", *words)
        return _gcloud(google, *parts)

    def judge(found: Any) -> Found:
        wrong = "" if found["format"] == "DOCKER" else f"it holds {found['format']}, not container images"
        return Found(own=_labels(found.get("labels")), wrong=wrong)

    return Step(
        name=f"image repository {place.registry}",
        look=command("describe"),
        judge=judge,
        make=(command("create", "--repository-format=docker", f"--labels={OWN_LABEL}"),),
        remove=(command("delete"),),
        permission="artifactregistry.repositories.create",
        costs=True,
    )


def _node_account(place: Place) -> Step:
    google = place.google

    def command(verb: str, name: str, *words: str) -> Command:
        return _gcloud(google, "iam", "service-accounts", verb, name, *words)

    short = f"{google.cluster}-nodes"
    return Step(
        name=f"account of the nodes {place.node_account}",
        look=command("describe", place.node_account),
        judge=lambda found: Found(own=found.get("description") == OWN_LABEL),
        make=(command("create", short, f"--description={OWN_LABEL}"),),
        remove=(command("delete", place.node_account),),
        permission="iam.serviceAccounts.create",
    )


def _pull(place: Place) -> Step:
    google = place.google
    role, member = "roles/artifactregistry.reader", f"serviceAccount:{place.node_account}"

    def command(verb: str, *words: str) -> Command:
        parts = ("artifacts", "repositories", verb, google.cluster, f"--location={place.region}", *words)
        return _gcloud(google, *parts)

    return Step(
        name="nodes may pull images from this repository",
        look=command("get-iam-policy"),
        judge=lambda policy: Found(there=_bound(policy, role, member)),
        make=(command("add-iam-policy-binding", f"--member={member}", f"--role={role}"),),
        permission="artifactregistry.repositories.setIamPolicy",
    )


def _cluster(place: Place) -> Step:
    google = place.google
    workload_pool = f"{google.project}.svc.id.goog"

    def command(verb: str, *words: str) -> Command:
        return _gcloud(google, "container", "clusters", verb, google.cluster, _at(google), *words)

    def judge(found: Any) -> Found:
        wrong = ""
        if found.get("workloadIdentityConfig", {}).get("workloadPool") != workload_pool:
            wrong = f"it lacks Workload Identity (--workload-pool={workload_pool})"
        elif found.get("networkConfig", {}).get("datapathProvider") != "ADVANCED_DATAPATH":
            wrong = "it lacks Dataplane V2, without which network rules have no effect"
        return _running(found, Found(own=_labels(found.get("resourceLabels")), wrong=wrong))

    return Step(
        name=place.cluster_name,
        look=command("describe"),
        judge=judge,
        make=(
            command(
                "create",
                f"--workload-pool={workload_pool}",
                "--enable-dataplane-v2",
                "--enable-ip-alias",
                "--enable-private-nodes",
                "--enable-shielded-nodes",
                "--shielded-secure-boot",
                "--release-channel=regular",
                f"--machine-type={SYSTEM_MACHINE}",
                "--num-nodes=1",
                f"--disk-size={SYSTEM_DISK_GIB}",
                f"--service-account={place.node_account}",
                "--workload-metadata=GKE_METADATA",
                # The nodes' account has no role in the project, so nothing on them may write there.
                "--logging=NONE",
                "--monitoring=NONE",
                "--no-enable-managed-prometheus",
                f"--labels={OWN_LABEL}",
            ),
        ),
        remove=(command("delete"),),
        permission="container.clusters.create",
        costs=True,
        minutes=8,
    )


def _pool(job: JobSpec, place: Place) -> Step:
    google = place.google

    def command(verb: str, *words: str) -> Command:
        parts = ("container", "node-pools", verb, POOL, f"--cluster={google.cluster}", _at(google), *words)
        return _gcloud(google, *parts)

    spot = ("--spot", f"--node-taints={GKE_SPOT}=true:NoSchedule", "--location-policy=ANY")
    return Step(
        name=f"node pool {POOL}: 0 to {google.max_nodes} {'spot ' * job.schedule.spot}{google.machine_type}",
        look=command("describe"),
        judge=lambda found: _running(
            found,
            Found(
                own=_labels(found["config"].get("resourceLabels")),
                wrong=_pool_differs(found, job, google),
            ),
        ),
        make=(
            command(
                "create",
                f"--machine-type={google.machine_type}",
                "--num-nodes=0",
                "--enable-autoscaling",
                "--total-min-nodes=0",
                f"--total-max-nodes={google.max_nodes}",
                *(spot if job.schedule.spot else ()),
                f"--disk-size={WORKER_DISK_GIB}",
                f"--service-account={place.node_account}",
                "--workload-metadata=GKE_METADATA",
                "--shielded-secure-boot",
                f"--labels={OWN_LABEL}",
            ),
        ),
        remove=(command("delete"),),
        gone_with=place.cluster_name,
        permission="container.clusters.update",
        costs=True,
        minutes=2,
    )


def _pool_differs(found: Any, job: JobSpec, google: Google) -> str:
    config, most = found["config"], found.get("autoscaling", {}).get("totalMaxNodeCount", 0)
    if config["machineType"] != google.machine_type:
        return f"it has {config['machineType']}, but the job asks for {google.machine_type}"
    if bool(config.get("spot")) != job.schedule.spot:
        return f"schedule.spot is {str(job.schedule.spot).lower()}, but the pool is made otherwise"
    if most != google.max_nodes:
        return f"it has at most {most} nodes, but the job asks for {google.max_nodes}"
    return ""


def _running(found: Any, ready: Found) -> Found:
    status = found["status"]
    if status in ("RUNNING", "RECONCILING") or ready.wrong:
        return ready
    if status in ("PROVISIONING", "STOPPING"):
        return Found(there=status == "PROVISIONING", own=ready.own, busy=status.lower())
    reason = found.get("statusMessage", "")
    return Found(own=ready.own, wrong=f"its state is {status} {reason}".rstrip())


def _bucket(place: Place) -> Step:
    google = place.google

    def command(verb: str, *words: str) -> Command:
        return _gcloud(google, "storage", "buckets", verb, place.bucket, *words)

    def judge(found: Any) -> Found:
        wrong = ""
        if found.get("public_access_prevention") != "enforced":
            wrong = "public access to it is not prevented (--public-access-prevention)"
        elif not found.get("uniform_bucket_level_access"):
            wrong = "its objects have rights of their own (--uniform-bucket-level-access)"
        return Found(own=_labels(found.get("labels")), wrong=wrong)

    return Step(
        name=place.bucket_name,
        look=command("describe"),
        judge=judge,
        make=(
            command(
                "create",
                f"--location={place.region}",
                "--uniform-bucket-level-access",
                "--public-access-prevention",
                # Checkpoints replace each other all the time; kept for a week, each would be paid for.
                "--soft-delete-duration=0",
            ),
            command("update", f"--update-labels={OWN_LABEL}"),
        ),
        undo=(command("delete"),),
        remove=(_gcloud(google, "storage", "rm", place.bucket, "--recursive"),),
        holds_runs=True,
        permission="storage.buckets.create",
        costs=True,
    )


def _access(job: JobSpec, place: Place, number: str, account: str, role: str) -> Step:
    google = place.google
    member = (
        f"principal://iam.googleapis.com/projects/{number}/locations/global/workloadIdentityPools/"
        f"{google.project}.svc.id.goog/subject/ns/{job.namespace}/sa/{account}"
    )
    role = f"roles/storage.{role}"

    def command(verb: str, *words: str) -> Command:
        return _gcloud(google, "storage", "buckets", verb, place.bucket, *words)

    binding = (f"--member={member}", f"--role={role}")
    return Step(
        name=f"{job.namespace}/{account} has {role} on this bucket",
        look=command("get-iam-policy"),
        judge=lambda policy: Found(there=_bound(policy, role, member)),
        make=(command("add-iam-policy-binding", *binding),),
        remove=(command("remove-iam-policy-binding", *binding),),
        gone_with=place.bucket_name,
        permission="storage.buckets.setIamPolicy",
    )


def _bound(policy: Any, role: str, member: str) -> bool:
    bindings = (policy or {}).get("bindings", [])
    return any(each["role"] == role and member in each["members"] for each in bindings)
