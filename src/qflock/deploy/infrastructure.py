"""Makes what a job needs on Google Cloud, and removes it again. Each step looks first, so both can be run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from qflock.deploy.gcloud import CloudError, Gcloud, shell
from qflock.deploy.google_cloud import (
    ABSENT,
    Found,
    Step,
    credentials_command,
    place_of,
    project_command,
    steps,
)
from qflock.deploy.prices import Prices, estimate
from qflock.deploy.spec import JobSpec

POLL_SECONDS, POLL_LIMIT = 10.0, 180
SEE_PROJECT = "resourcemanager.projects.get"


class DeclinedError(CloudError):
    """The user said no; nothing was done."""


@dataclass(frozen=True)
class Session:
    """How steps are run.

    Args:
        gcloud: The program.
        confirm: Asks a question before money is spent or something destroyed.
        pause: Waits between two looks at something that is busy.
    """

    gcloud: Gcloud
    confirm: Callable[[str], bool]
    pause: Callable[[float], None] = time.sleep

    def look(self, step: Step) -> Found:
        """What is there, once it is no longer busy."""
        for _ in range(POLL_LIMIT):
            answer = self.gcloud.ask(step.look, _reading(step.permission))
            found = ABSENT if answer is None else step.judge(answer)
            if not found.busy:
                return found
            self.pause(POLL_SECONDS)
        raise CloudError(f"The {step.name} is still {found.busy}; wait, and run the same again")

    def make(self, step: Step) -> None:
        """Makes it; where a later command fails, the earlier ones are undone."""
        for position, command in enumerate(step.make):
            try:
                self.gcloud.do(command, step.permission)
            except CloudError:
                if position:
                    for undoing in step.undo:
                        self.gcloud.do(undoing, step.permission)
                raise

    def agree(self, question: str) -> None:
        """Raises unless the user agrees."""
        if not self.confirm(question):
            raise DeclinedError("You said no, so nothing more was done; what there is stays")


def plan(job: JobSpec, prices: Prices) -> Iterator[str]:
    """All commands of `up` and `down`, and the estimate, as lines; needs neither gcloud nor an account."""
    google, everything = place_of(job).google, steps(job)
    yield f"# Your project's number, PROJECT_NUMBER below, from: {shell(project_command(google))}"
    for number, step in enumerate(everything, 1):
        yield f"# {number}. {step.name}; there already? {shell(step.look)}"
        yield from map(shell, step.make)
    yield f"# {len(everything) + 1}. kubeconfig for `qflock deploy`"
    yield shell(credentials_command(google))
    yield "# `qflock infra down` removes all of it again, APIs aside, which cost nothing:"
    for step in _removal_order(everything):
        if not step.gone_with:
            yield from (f"#   {shell(command)}" for command in step.remove)
    yield from (f"# {line}" for line in estimate(job, prices).lines())


def up(job: JobSpec, prices: Prices, session: Session) -> Iterator[str]:
    """Makes what is missing, in order, and says so; asks once, before the first step that costs.

    Raises:
        CloudError: If a step fails; the same call goes on from there.
    """
    asked = False
    for step in steps(job, _project_number(job, session)):
        found = session.look(step)
        if found.wrong:
            raise CloudError(
                f"The {step.name} exists, but cannot be used: {found.wrong}; change the job or remove it"
            )
        if found.there:
            yield f"{step.name}: there" + ("" if found.own else " (yours: `down` will leave it)")
            continue
        if step.costs and not asked:
            yield from estimate(job, prices).lines()
            session.agree(f"Make what is missing in project {place_of(job).google.project}?")
            asked = True
        yield f"{step.name}: being made" + (f", about {step.minutes} min" if step.minutes else "")
        session.make(step)
    session.gcloud.do(credentials_command(place_of(job).google), "container.clusters.get")
    yield f"Done. Push images to {place_of(job).registry}, then: qflock deploy apply"


def down(job: JobSpec, session: Session, keep_bucket: bool = False) -> Iterator[str]:
    """Says what there is, asks, and removes it; what qflock has not made stays.

    Raises:
        CloudError: If a step fails; the same call goes on from there.
    """
    everything = _removal_order(steps(job, _project_number(job, session)))
    doomed: list[Step] = []
    for step in everything:
        found = session.look(step)
        if not found.there:
            continue
        if not found.own or (keep_bucket and step.holds_runs):
            yield f"{step.name}: stays" + ("" if found.own else ", since it has no label of qflock")
        else:
            doomed.append(step)
    if not doomed:
        yield "Nothing to remove: nothing that qflock made is left"
        return
    names = {step.name for step in doomed}
    doomed = [step for step in doomed if step.gone_with not in names]
    for step in doomed:
        yield f"{step.name}: to be removed"
    session.agree(_last_question(doomed))
    for step in doomed:
        yield f"{step.name}: being removed"
        for command in step.remove:
            session.gcloud.do(command, step.permission.replace("create", "delete"))
    yield "Done. Nothing that qflock made costs money any more" + (", the bucket aside" * keep_bucket)


def _project_number(job: JobSpec, session: Session) -> str:
    google = place_of(job).google
    project = session.gcloud.ask(project_command(google), SEE_PROJECT)
    if project is None or project.get("lifecycleState") != "ACTIVE":
        raise CloudError(
            f"Key `google.project` must be a project of yours, but {google.project!r} is none: gcloud projects list"
        )
    return str(project["projectNumber"])


def _removal_order(everything: list[Step]) -> list[Step]:
    """What is removed, the last made first."""
    return [step for step in reversed(everything) if step.remove]


def _reading(permission: str) -> str:
    """What a look needs, from what making needs."""
    stem, _, verb = permission.rpartition(".")
    return f"{stem}.{'getIamPolicy' if verb == 'setIamPolicy' else 'list' if verb == 'enable' else 'get'}"


def _last_question(doomed: list[Step]) -> str:
    lost = [step.name for step in doomed if step.holds_runs]
    return "Remove all of this" + (f", and with the {lost[0]} every run in it, for ever?" if lost else "?")
