"""Runs `gcloud`, and turns what it says into an answer, "not found", or one line that says what to do."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from qflock.deploy.google_cloud import Command
from qflock.errors import ConfigurationError, QflockError

INSTALL = "https://cloud.google.com/sdk/docs/install"
NOT_FOUND = re.compile(r"NOT_FOUND|code=404|\bnot found\b|HTTPError 404", re.IGNORECASE)
DENIED = re.compile(
    r"PERMISSION_DENIED|code=403|HTTPError 403|does not have permission|Permission denied", re.IGNORECASE
)
# Service, resource and verb; names of APIs such as container.googleapis.com look alike.
PERMISSION = re.compile(r"\b[a-z]+\.(?!googleapis\.)[a-zA-Z]+\.[a-zA-Z]+\b")
# From what gcloud says to what helps, the first that fits.
HINTS = [
    (
        r"active account|current auth tokens|Reauthentication|gcloud auth login",
        "log in: gcloud auth login",
    ),
    (
        r"[Bb]illing",
        "link a billing account to the project: https://console.cloud.google.com/billing/projects",
    ),
    (
        r"SERVICE_DISABLED|has not been used in project|not enabled on project",
        "an API was enabled a moment ago, or is missing; wait two minutes and run the same again",
    ),
    (
        r"[Qq]uota|STOCKOUT|RESOURCE_POOL_EXHAUSTED",
        "ask for more quota, or choose another google.location or google.machine_type",
    ),
    (
        r"bucket name is not available|HTTPError 409.*bucket",
        "bucket names are unique in the world; choose another in `store`",
    ),
    (
        r"networks/default|[Nn]etwork.*default",
        "the project has no network of the name default: gcloud compute networks create default",
    ),
]
# The smallest predefined role that holds a permission, by the permission's beginning.
ROLES = {
    "serviceusage.": "roles/serviceusage.serviceUsageAdmin",
    "artifactregistry.": "roles/artifactregistry.admin",
    "container.": "roles/container.admin",
    "iam.serviceAccounts.actAs": "roles/iam.serviceAccountUser",
    "iam.": "roles/iam.serviceAccountAdmin",
    "storage.": "roles/storage.admin",
    "resourcemanager.": "roles/browser",
    "compute.": "roles/compute.admin",
}


class CloudError(QflockError):
    """Google Cloud refused, or `gcloud` failed."""


def shell(command: Command) -> str:
    """The command as one types it."""
    return shlex.join(["gcloud", *command])


@dataclass(frozen=True)
class Gcloud:
    """The program.

    Args:
        program: Its path.
    """

    program: str

    def ask(self, command: Command, permission: str) -> Any:
        """The JSON that a command prints; None for a thing that is not there.

        Raises:
            CloudError: If the command fails otherwise.
        """
        done = self._run((*command, "--format=json"))
        if done.returncode == 0:
            return _json(command, done.stdout)
        if NOT_FOUND.search(done.stderr) and not DENIED.search(done.stderr):
            return None
        raise CloudError(explain(command, done.stderr, permission))

    def do(self, command: Command, permission: str) -> None:
        """Runs a command that changes something, and never waits for an answer on the terminal.

        Raises:
            CloudError: If it fails.
        """
        done = self._run((*command, "--quiet"))
        if done.returncode != 0:
            raise CloudError(explain(command, done.stderr, permission))

    def _run(self, command: Command) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )


def find_gcloud() -> Gcloud:
    """The installed `gcloud`, with an account that is logged in.

    Raises:
        ConfigurationError: If it is not installed, or nobody is logged in.
    """
    program = shutil.which("gcloud")
    if program is None:
        raise ConfigurationError(
            f"Google Cloud's command `gcloud` must be installed, but is not on PATH: {INSTALL} "
            "(`qflock infra plan` works without)"
        )
    gcloud = Gcloud(program)
    if not gcloud.ask(("auth", "list", "--filter=status:ACTIVE"), ""):
        raise ConfigurationError("An account must be logged in, but none is: gcloud auth login")
    return gcloud


def explain(command: Command, message: str, permission: str) -> str:
    """One line: which command, what was wrong, what to do."""
    for pattern, hint in HINTS:
        if re.search(pattern, message):
            return f"{shell(command)} failed: {hint} ({_last_line(message)})"
    if DENIED.search(message):
        missing = next(iter(_permissions(message)), permission)
        role = next((role for start, role in ROLES.items() if missing.startswith(start)), "")
        return (
            f"{shell(command)} was refused: your account lacks the permission {missing}"
            + (f", which the role {role} holds" if role else "")
            + "; ask an owner of the project for it"
        )
    return f"{shell(command)} failed: {_last_line(message)}; correct the cause and run the same again"


def _permissions(message: str) -> list[str]:
    known = tuple(start.partition(".")[0] + "." for start in ROLES)
    return [each for each in PERMISSION.findall(message) if each.startswith(known)]


def _last_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line]
    return ([*errors, *lines[-1:]] or ["no message"])[0]


def _json(command: Command, text: str) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        raise CloudError(f"{shell(command)} printed no JSON, but {text[:80]!r}; update gcloud") from None
