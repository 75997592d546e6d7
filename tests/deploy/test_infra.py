"""`infra plan|up|down` with a stand-in `gcloud`: what is made, what is asked, what a failure leaves, and that it goes on."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qflock.deploy.files import parse_job
from qflock.deploy.gcloud import CloudError, find_gcloud
from qflock.deploy.google_cloud import credentials_command, place_of, project_command, steps
from qflock.deploy.infrastructure import DeclinedError, Session, down, plan, up
from qflock.deploy.prices import estimate, read_prices
from qflock.deploy.render import manifests
from qflock.deploy.spec import Google, JobSpec, Resources, Schedule
from qflock.errors import ConfigurationError

STAND_IN = Path(__file__).parent / "gcloud_stand_in.py"
JOB = JobSpec(
    name="qcnn",
    store="gs://runs/qcnn",
    schedule=Schedule(spot=True),
    google=Google(project="my-project", max_nodes=4),
)
PRICES = read_prices()
# Enable, repository, account, pull, cluster, pool, bucket and its label, two bindings, credentials.
CHANGES = 11
REMOVALS = 4
KINDS = ("repositories", "accounts", "clusters", "pools", "buckets")


@dataclass
class Cloud:
    """The stand-in's files, and a session that answers yes and does not wait."""

    folder: Path
    questions: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    answer: bool = True

    def session(self) -> Session:
        return Session(find_gcloud(), self._ask, self.pauses.append)

    def _ask(self, question: str) -> bool:
        self.questions.append(question)
        return self.answer

    def up(self, job: JobSpec = JOB) -> list[str]:
        return list(up(job, PRICES, self.session()))

    def down(self, job: JobSpec = JOB, keep_bucket: bool = False) -> list[str]:
        return list(down(job, self.session(), keep_bucket))

    @property
    def state(self) -> dict:
        return json.loads((self.folder / "state.json").read_text())

    def left(self) -> set[str]:
        return {name for kind in KINDS for name in self.state[kind]}

    def change(self, edit) -> None:
        state = self.state
        edit(state)
        (self.folder / "state.json").write_text(json.dumps(state))

    def fail(self, change: int, message: str) -> None:
        (self.folder / "failures.json").write_text(json.dumps({str(change): message}))

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The stand-in, first on PATH."""
    program = folder / "bin" / "gcloud"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n{STAND_IN.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("QFLOCK_STAND_IN", str(folder))
    return Cloud(folder)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A project without anything."""
    return installed(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def after_up(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `up` leaves, as the stand-in's state."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = installed(tmp_path_factory.mktemp("cloud"), monkeypatch)
        made.up()
        return json.dumps(made.state)


@pytest.fixture
def made(cloud: Cloud, after_up: str) -> Cloud:
    """A project in which `up` was run."""
    (cloud.folder / "state.json").write_text(after_up)
    return cloud


def test_up_makes_everything_and_a_second_time_nothing(cloud: Cloud) -> None:
    assert cloud.up()[-1].startswith("Done. Push images to us-central1-docker.pkg.dev/my-project/qflock")
    state = cloud.state
    assert state["changes"] == CHANGES
    assert len(cloud.questions) == 1
    assert state["buckets"]["gs://runs"]["bindings"] == [
        {"role": f"roles/storage.{role}", "members": [f"{principal}{account}"]}
        for principal in [
            "principal://iam.googleapis.com/projects/4711/locations/global/workloadIdentityPools/"
            "my-project.svc.id.goog/subject/ns/default/sa/"
        ]
        for account, role in [("qcnn", "objectUser"), ("qcnn-viewer", "objectViewer")]
    ]
    assert state["kubeconfig"] == "qflock"
    lines = cloud.up()
    assert cloud.state["changes"] == CHANGES + 1, "the kubeconfig is written again, nothing else"
    assert len(cloud.questions) == 1, "what costs nothing more is not asked"
    assert [line for line in lines if "being made" in line] == []


def test_no_role_is_for_the_whole_project(cloud: Cloud) -> None:
    cloud.up()
    assert not [call for call in cloud.calls() if call[0] == "projects" and call[1] != "describe"]
    assert not [
        call
        for call in cloud.calls()
        if any("gserviceaccount.com" in word and "storage" in call for word in call)
    ]


def test_down_says_what_asks_once_and_leaves_nothing(made: Cloud) -> None:
    lines = made.down()
    assert sum("to be removed" in line for line in lines) == REMOVALS
    assert "every run in it" in made.questions[-1]
    assert made.left() == set()
    assert made.down() == ["Nothing to remove: nothing that qflock made is left"]


def test_the_bucket_can_stay_without_the_rights_on_it(made: Cloud) -> None:
    assert "the bucket aside" in made.down(keep_bucket=True)[-1]
    assert made.left() == {"gs://runs"}
    assert made.state["buckets"]["gs://runs"]["bindings"] == []
    assert "every run" not in made.questions[-1]


@pytest.mark.parametrize("change", range(1, CHANGES + 1))
def test_up_goes_on_after_a_failure_at_any_step(change: int, cloud: Cloud) -> None:
    cloud.fail(change, "ERROR: (gcloud) INTERNAL: a passing fault")
    with pytest.raises(CloudError, match="passing fault; correct the cause and run the same again"):
        cloud.up()
    assert "Done" in cloud.up()[-1]
    label = cloud.state["buckets"]["gs://runs"]["labels"]
    assert label == {"managed-by": "qflock"}, (
        "a bucket that was left without its label would never be removed"
    )


@pytest.mark.parametrize("change", range(1, REMOVALS + 1))
def test_down_goes_on_after_a_failure_at_any_step(change: int, made: Cloud) -> None:
    made.fail(CHANGES + change, "ERROR: (gcloud) INTERNAL: a passing fault")
    with pytest.raises(CloudError, match="passing fault"):
        made.down()
    assert made.left()
    made.down()
    assert made.left() == set()


def test_no_means_nothing_is_made_or_removed(cloud: Cloud) -> None:
    cloud.answer = False
    with pytest.raises(DeclinedError):
        cloud.up()
    assert cloud.left() == set()
    cloud.answer = True
    cloud.up()
    before, cloud.answer = cloud.left(), False
    with pytest.raises(DeclinedError):
        cloud.down()
    assert cloud.left() == before


# Which command fails, with which words, and what is to be named.
DENIALS = [
    (
        1,
        "PERMISSION_DENIED: Permission denied to enable service [container.googleapis.com]",
        "serviceusage.services.enable",
    ),
    (
        2,
        "PERMISSION_DENIED: Permission 'artifactregistry.repositories.create' denied on resource",
        "artifactregistry.repositories.create",
    ),
    (
        5,
        'ResponseError: code=403, message=Required "container.clusters.create" permission(s) for "projects/x".',
        "container.clusters.create",
    ),
    (
        5,
        "ResponseError: code=403, message=The user lacks the permission iam.serviceAccounts.actAs",
        "iam.serviceAccounts.actAs",
    ),
    (
        7,
        "HTTPError 403: me@example.com does not have storage.buckets.create access to the project.",
        "storage.buckets.create",
    ),
    (9, "HTTPError 403: The caller does not have permission", "storage.buckets.setIamPolicy"),
]


@pytest.mark.parametrize(("change", "message", "permission"), DENIALS)
def test_a_missing_permission_is_named_with_a_role(change, message, permission, cloud: Cloud) -> None:
    cloud.fail(change, f"ERROR: (gcloud) {message}")
    with pytest.raises(CloudError) as error:
        cloud.up()
    assert f"lacks the permission {permission}, which the role roles/" in str(error.value)
    assert "\n" not in str(error.value)


HINTS = [
    ("FAILED_PRECONDITION: Billing account for project '4711' is not found.", "link a billing account"),
    ("PERMISSION_DENIED: Artifact Registry API has not been used in project 4711 before", "two minutes"),
    (
        'ResponseError: code=403, message=Insufficient regional quota to satisfy request: resource "CPUS"',
        "more quota",
    ),
    ("ResponseError: code=403, message=Quota 'N2_CPUS' exceeded. Limit: 8.0", "more quota"),
    ('ResponseError: code=400, message=Network "default" does not exist.', "networks create default"),
    (
        "HTTPError 403: me@example.com does not have storage.buckets.get access to the bucket.",
        "choose another name in `store`",
    ),
    ("There was a problem refreshing your current auth tokens: expired", "gcloud auth login"),
    (
        "PERMISSION_DENIED: Permission 'artifactregistry.repositories.create' denied; use `--billing-project` "
        "or set the billing/quota_project property",
        "lacks the permission artifactregistry.repositories.create",
    ),
]


@pytest.mark.parametrize(("message", "hint"), HINTS)
def test_common_faults_say_what_helps(message: str, hint: str, cloud: Cloud) -> None:
    cloud.fail(2, f"ERROR: (gcloud) {message}")
    with pytest.raises(CloudError, match=hint):
        cloud.up()


def test_a_cluster_that_is_still_being_made_is_waited_for(made: Cloud) -> None:
    made.change(lambda state: state["clusters"]["qflock"].update(states=["PROVISIONING", "PROVISIONING"]))
    made.up()
    assert len(made.pauses) == 2


def test_a_cluster_that_is_already_going_counts_as_gone(made: Cloud) -> None:
    made.change(lambda state: state["clusters"]["qflock"].update(states=["STOPPING"]))
    made.pauses.clear()
    made.down()
    assert len(made.pauses) == 1
    assert made.left() == set()


UNFIT = [
    (lambda s: s["clusters"]["qflock"].update(workloadIdentityConfig={}), "lacks Workload Identity"),
    (lambda s: s["clusters"]["qflock"].update(networkConfig={}), "lacks Dataplane V2"),
    (lambda s: s["clusters"]["qflock"].update(status="ERROR", statusMessage="no room"), "its state is ERROR no room"),
    (lambda s: s["buckets"]["gs://runs"].update(public_access_prevention="inherited"), "public access"),
    (lambda s: s["buckets"]["gs://runs"].update(uniform_bucket_level_access=False), "rights of their own"),
    (lambda s: s["repositories"]["qflock"].update(format="PYTHON"), "not container images"),
    (lambda s: s["pools"]["workers"]["config"].update(machineType="e2-standard-4"), "has e2-standard-4"),
    (lambda s: s["pools"]["workers"]["config"].update(spot=False), "schedule.spot is true"),
    (lambda s: s["pools"]["workers"]["autoscaling"].update(totalMaxNodeCount=2), "at most 2 nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "reason"), UNFIT)
def test_what_is_there_but_unsafe_or_different_is_refused(edit, reason: str, made: Cloud) -> None:
    made.change(edit)
    with pytest.raises(CloudError, match=reason):
        made.up()


def test_what_others_made_is_used_and_stays(made: Cloud) -> None:
    made.change(
        lambda s: [s["buckets"]["gs://runs"].pop("labels"), s["clusters"]["qflock"].pop("resourceLabels")]
    )
    assert sum("yours" in line for line in made.up()) == 2
    lines = made.down()
    assert sum("stays, since it has no label of qflock" in line for line in lines) == 2
    assert made.left() == {"gs://runs", "qflock"}, "the bucket and the cluster"
    assert made.state["pools"] == {}
    assert made.state["repositories"] == {}


def qflock(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "qflock.toml"
    path.write_text(
        'name = "qcnn"\nstore = "gs://runs/qcnn"\n[schedule]\nspot = true\n[google]\nproject = "my-project"\n'
    )
    command = [sys.executable, "-m", "qflock.cli", "infra", *arguments, str(path)]
    return subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )


def test_the_command_line_refuses_to_spend_unasked(cloud: Cloud) -> None:
    refused = qflock(cloud.folder, "up")
    assert refused.returncode == 2
    assert "give --yes" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert cloud.left() == set()
    done = qflock(cloud.folder, "up", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Estimate in US dollars" in done.stdout
    assert cloud.left()


def test_plan_needs_no_gcloud_and_up_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    planned = qflock(tmp_path, "plan")
    assert planned.returncode == 0, planned.stderr
    assert "gcloud container clusters create qflock --location=us-central1-a" in planned.stdout
    with pytest.raises(ConfigurationError, match=r"cloud\.google\.com/sdk/docs/install"):
        find_gcloud()


def test_nobody_logged_in_and_foreign_projects_are_told(cloud: Cloud) -> None:
    with pytest.raises(CloudError, match="'other-project' is none"):
        cloud.up(JOB.model_copy(update={"google": Google(project="other-project")}))
    (cloud.folder / "accounts.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="gcloud auth login"):
        cloud.up()


REFUSED = [
    ({"google": None}, r"section \[google\]"),
    ({"store": "s3://runs/qcnn"}, "gs://BUCKET"),
    ({"store": "gs://"}, "gs://BUCKET"),
    (
        {"google": Google(project="my-project", cluster="a-name-that-is-far-too-long")},
        "at most 24 characters",
    ),
    ({"workers": 5}, "max_nodes` must be at least 5"),
    ({"resources": Resources(cpu=4)}, r"more than pods can have on n2-standard-4 \(3.5 cores"),
    ({"resources": Resources(memory="14Gi")}, "more than pods can have"),
]


@pytest.mark.parametrize(("update", "message"), REFUSED)
def test_jobs_that_cannot_run_there_are_refused_before_anything(update: dict, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        steps(JOB.model_copy(update=update))


def test_several_workers_share_a_large_node() -> None:
    large = Google(project="my-project", machine_type="n2-standard-16", max_nodes=1)
    assert steps(JOB.model_copy(update={"google": large, "workers": 7}))
    with pytest.raises(ConfigurationError, match="at least 2"):
        steps(JOB.model_copy(update={"google": large, "workers": 8}))


PAGE = (Path(__file__).parents[2] / "docs" / "google-cloud.md").read_text()


def shown_after(command: str) -> list[str]:
    """The lines that the tutorial shows after a command."""
    return PAGE.split(f"$ {command}\n```\n\n```text\n")[1].split("\n```")[0].splitlines()


def test_the_tutorial_shows_what_up_and_down_print(cloud: Cloud) -> None:
    job = parse_job(re.findall(r"<<'END'\n(.*?)END\n", PAGE, re.DOTALL)[0])
    made = cloud.up(job)
    made.insert(made.index(estimate(job, PRICES).lines()[-1]) + 1, f"{cloud.questions[0]} [y/N]: y")
    assert shown_after("qflock infra up qflock.toml") == made
    removed = cloud.down(job)
    removed.insert(len(removed) // 2, f"{cloud.questions[1]} [y/N]: y")
    assert shown_after("qflock infra down qflock.toml") == removed
    applied = [f"{each['kind']} {each['metadata']['name']} created" for each in manifests(job)]
    assert shown_after("qflock deploy apply qflock.toml") == applied


def commands_in_the_tutorial() -> list[str]:
    """Every gcloud command that the page tells the reader to type."""
    found = re.findall(r"(?:`|^\$ )(gcloud [a-z]+ [^`\n]*[^`\n ])", PAGE, re.MULTILINE)
    return [each for each in found if "..." not in each]


def commands() -> list[str]:
    """Every command that `up` and `down` run, and those that are others for a region without spot nodes."""
    regional = Google(project="my-project", location="europe-west4", machine_type="c3-standard-4")
    google = place_of(JOB).google
    words = [
        ("auth", "list", "--filter=status:ACTIVE", "--format=json"),
        (*project_command(google), "--format=json"),
        (*credentials_command(google), "--quiet"),
    ]
    for step in steps(JOB, "4711"):
        words.append((*step.look, "--format=json"))
        words += [(*each, "--quiet") for each in (*step.make, *step.undo, *step.remove)]
    plain = steps(JOB.model_copy(update={"google": regional, "schedule": Schedule()}), "4711")
    words += [(*each, "--quiet") for step in plain if step.minutes > 1 for each in step.make]
    return [" ".join(("gcloud", *each)) for each in words]


def lint(texts: list[str], folder: Path) -> dict[str, str]:
    """What the real gcloud's own linter says of each command; it works offline and without an account."""
    program = shutil.which("gcloud")
    if program is None:
        return {}
    (folder / "commands.json").write_text(json.dumps([{"command_string": text} for text in texts]))
    done = subprocess.run(
        [program, "meta", "lint-gcloud-commands", f"--commands-file={folder / 'commands.json'}", "--serialize"],
        capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"CLOUDSDK_CONFIG": str(folder / "config"), "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
    )  # fmt: skip
    results = [answer[0] for answer in json.loads(done.stdout).values()]
    return {each["command_string"]: "" if each["success"] else each["error_message"] for each in results}


def test_the_real_gcloud_accepts_every_command(tmp_path: Path) -> None:
    wrong = "gcloud container clusters create qflock --enable-dataplane-v3"
    right = {*commands(), *commands_in_the_tutorial()}
    verdicts = lint([*right, wrong], tmp_path)
    if verdicts:
        assert "unrecognized" in verdicts.pop(wrong)
        assert {text: error for text, error in verdicts.items() if error} == {}
        assert len(verdicts) == len(right)


def test_the_estimate_states_its_date_and_can_be_corrected(tmp_path: Path) -> None:
    lines = "\n".join(plan(JOB, PRICES))
    assert f"prices of {PRICES.date}" in lines
    lines = re.sub(" +", " ", lines)
    # By hand: the fee 0.10, 2 of 0.033506 and 30 GiB of disk; then twice 4 of 0.02303 and 50 GiB.
    assert "as long as they exist 0.171 per hour" in lines
    assert "2 worker nodes, while the job trains 0.198 per hour" in lines
    table = tmp_path / "prices.toml"
    table.write_text(
        'date = "2027-01-01"\nsources = ["mine"]\ncluster_hour = 1\ndisk_gib_month = 0\nbucket_gib_month = 0\n'
        "images_gib_month = 0\n[machines.us-central1]\n"
    )
    lines = "\n".join(plan(JOB, read_prices(str(table))))
    assert "prices of 2027-01-01" in lines
    assert "not in the table" in lines
    table.write_text("date = 3")
    with pytest.raises(ConfigurationError, match=r"key `date`.*prices\.toml"):
        read_prices(str(table))
