"""`qflock infra`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from qflock.cli.deploy import JobFile
from qflock.errors import ConfigurationError

if TYPE_CHECKING:
    from qflock.deploy.infrastructure import Session

app = typer.Typer(
    name="infra", help="Make and remove what a job file needs on Google Cloud.", no_args_is_help=True
)

PricesFile = Annotated[
    str | None, typer.Option("--prices", help="Prices to use instead of the built-in ones.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before spending or destroying.")]


@app.command()
def plan(job: JobFile, prices: PricesFile = None) -> None:
    """Print the commands and what they cost; neither gcloud nor an account is needed."""
    from qflock.deploy.files import read_job
    from qflock.deploy.infrastructure import plan as lines
    from qflock.deploy.prices import read_prices

    for line in lines(read_job(job), read_prices(prices)):
        typer.echo(line)


@app.command()
def up(job: JobFile, prices: PricesFile = None, yes: Yes = False) -> None:
    """Make what is missing; after a failure, run it again."""
    from qflock.deploy.files import read_job
    from qflock.deploy.infrastructure import up as make
    from qflock.deploy.prices import read_prices

    spec, table = read_job(job), read_prices(prices)
    for line in make(spec, table, _session(yes)):
        typer.echo(line)


@app.command()
def down(
    job: JobFile,
    yes: Yes = False,
    keep_bucket: Annotated[
        bool, typer.Option("--keep-bucket", help="Leave the bucket and the runs.")
    ] = False,
) -> None:
    """Say what there is and remove it; after a failure, run it again."""
    from qflock.deploy.files import read_job
    from qflock.deploy.infrastructure import down as remove

    for line in remove(read_job(job), _session(yes), keep_bucket):
        typer.echo(line)


def _session(yes: bool) -> Session:
    from qflock.deploy.gcloud import find_gcloud
    from qflock.deploy.infrastructure import Session

    return Session(find_gcloud(), (lambda question: True) if yes else _ask)


def _ask(question: str) -> bool:
    if not sys.stdin.isatty():
        raise ConfigurationError(f"There is no terminal to ask {question!r}: give --yes to agree beforehand")
    return typer.confirm(question)
