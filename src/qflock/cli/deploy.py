"""`qflock deploy`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from qflock.errors import QflockError

app = typer.Typer(name="deploy", help="Run a job file on Kubernetes.", no_args_is_help=True)

JobFile = Annotated[str, typer.Argument(metavar="JOB", help="The job file, for instance `qflock.toml`.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")]
Context = Annotated[str | None, typer.Option(help="Of the kubeconfig; the current one by default.")]


class Task(StrEnum):
    """What the manifests do."""

    train = "train"
    infer = "infer"


TaskOption = Annotated[Task, typer.Option(help="Train, or predict with the run's newest weights.")]


@app.command()
def render(job: JobFile, task: TaskOption = Task.train) -> None:
    """Print the manifests; no cluster is needed."""
    from qflock.deploy.checks import check_for_cluster
    from qflock.deploy.files import read_job
    from qflock.deploy.render import render as text

    spec = read_job(job)
    check_for_cluster(spec)
    typer.echo(text(spec, task.value), nl=False)


@app.command()
def apply(
    job: JobFile, task: TaskOption = Task.train, dry_run: DryRun = False, context: Context = None
) -> None:
    """Submit the job and print what changed."""
    from qflock.deploy.checks import check_for_cluster
    from qflock.deploy.cluster import apply as submit
    from qflock.deploy.cluster import connect
    from qflock.deploy.files import read_job
    from qflock.deploy.render import manifests

    spec = read_job(job)
    check_for_cluster(spec)
    for change in submit(connect(context), manifests(spec, task.value), dry_run):
        typer.echo(f"{change.kind} {change.name} {change.verb}{' (dry run)' if dry_run else ''}")


@app.command()
def status(job: JobFile, context: Context = None) -> None:
    """Show the workers, their restarts, and the run's last step and loss."""
    from qflock.deploy.cluster import connect
    from qflock.deploy.files import read_job
    from qflock.deploy.watch import progress, workers

    spec = read_job(job)
    for worker in workers(connect(context), spec):
        typer.echo(
            f"worker {worker.index}  {worker.phase}  replaced {worker.replaced}  {worker.reason}".rstrip()
        )
    try:
        typer.echo(progress(spec.store))
    except QflockError as error:
        typer.echo(f"run: {error}")


@app.command()
def logs(
    job: JobFile,
    worker: Annotated[int, typer.Option(help="Which worker; 0 is the chief.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the worker ends.")] = False,
    context: Context = None,
) -> None:
    """Print a worker's log."""
    from qflock.deploy.cluster import connect
    from qflock.deploy.files import read_job
    from qflock.deploy.watch import log_lines

    for line in log_lines(connect(context), read_job(job), worker, follow):
        typer.echo(line)


@app.command()
def delete(job: JobFile, dry_run: DryRun = False, context: Context = None) -> None:
    """Delete what `apply` made, and nothing else; the run's files stay."""
    from qflock.deploy.cluster import connect
    from qflock.deploy.cluster import delete as remove
    from qflock.deploy.files import read_job

    for change in remove(connect(context), read_job(job), dry_run):
        typer.echo(f"{change.kind} {change.name} {change.verb}{' (dry run)' if dry_run else ''}")


@app.command()
def schema() -> None:
    """Print the JSON schema of job files, for editors."""
    from qflock.deploy.files import json_schema

    typer.echo(json_schema(), nl=False)
