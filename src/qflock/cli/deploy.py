"""`qflock deploy`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from qflock.errors import QflockError

app = typer.Typer(
    name="deploy", help="Run a job file on Kubernetes.", no_args_is_help=True, rich_markup_mode="markdown"
)

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
    """Print the manifests; no cluster and no credentials are needed.

    A job file is TOML. The least that a cluster needs is a name and a store that every pod reaches:

    * `name = "first"`

    * `store = "gs://my-bucket/first"`

    All else has a default: `workers`, `image`, `kind` (indexed-job, jobset or tfjob), and the tables `[experiment]`,
    `[resources]`, `[schedule]`, `[limits]` and `[google]`. `qflock deploy schema` describes every key.

    What is printed is what `apply` submits: accounts, network rules, TensorBoard, and the training or, with
    `--task infer`, the prediction. A job that could not run is refused here already, with exit code 2: a local store,
    too little memory for the circuit, a misspelt key.

    Examples:

    * `qflock deploy render qflock.toml`

    * `qflock deploy render qflock.toml --task infer`

    * `qflock deploy render qflock.toml | kubectl diff -f -`
    """
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
    """Submit the job, all of it or nothing, and print what changed.

    Every object is rehearsed on the cluster first, so that what it refuses changes nothing. Objects that others made
    are left alone. Exit code 2 if the cluster refuses or does not answer.

    Examples:

    * `qflock deploy apply qflock.toml --dry-run`

    * `qflock deploy apply qflock.toml`

    * `qflock deploy apply qflock.toml --task infer`
    """
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
    """Show the workers, their restarts, and the run's last step and loss.

    The step and the loss are read from the store, which needs its credentials here too.

    Example:

    * `qflock deploy status qflock.toml`
    """
    from qflock.deploy.cluster import connect
    from qflock.deploy.files import read_job
    from qflock.deploy.watch import progress, workers

    spec = read_job(job)
    for worker in workers(connect(context), spec):
        typer.echo(worker.line())
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
    """Print the log of a worker's newest pod.

    Examples:

    * `qflock deploy logs qflock.toml --follow`

    * `qflock deploy logs qflock.toml --worker 1`
    """
    from qflock.deploy.cluster import connect
    from qflock.deploy.files import read_job
    from qflock.deploy.watch import log_lines

    for line in log_lines(connect(context), read_job(job), worker, follow):
        typer.echo(line)


@app.command()
def delete(job: JobFile, dry_run: DryRun = False, context: Context = None) -> None:
    """Delete what `apply` made, and nothing else; the run's files stay.

    Examples:

    * `qflock deploy delete qflock.toml --dry-run`

    * `qflock deploy delete qflock.toml`
    """
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
