"""`qflock train`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qflock.cli import options
from qflock.errors import ConfigurationError


def train(
    what: options.What = "",
    run: Annotated[
        str, typer.Option(help="New folder or URL (gs://, s3://) that holds everything about the run.")
    ] = "",
    job: Annotated[str, typer.Option(help="Job file: what to train and where; in place of WHAT.")] = "",
    architecture: options.Architecture = "hybrid",
    qubits: options.Qubits = 8,
    examples: options.Examples = 160,
    epochs: options.Epochs = 50,
    batch_size: options.BatchSize = 32,
    learning_rate: Annotated[float, typer.Option(help="Of the optimiser.")] = 0.02,
    seed: Annotated[
        int, typer.Option(help="Of data, initial weights and order. Same seed, same losses.")
    ] = 0,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    keep: Annotated[int, typer.Option(help="How many checkpoints are kept.")] = 3,
    workers: options.Workers = 1,
    start_timeout: options.StartTimeout = 300.0,
    restarts: options.Restarts = 5,
    port: options.Port = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    profile: options.Profile = "",
) -> None:
    """Train a model on one or several workers; the losses are the same for any number of them.

    Examples:

    * `qflock train qcnn --workers 2 --run runs/first`

    * `qflock train qcnn --architecture full --qubits 6 --epochs 20 --run runs/full`

    * `qflock train my_file.py:experiment --epochs 10 --run runs/mine`

    * `qflock train qcnn --profile 10,20 --run runs/profiled`

    * `qflock train --job qflock.toml`

    Where TF_CONFIG is set, the same command joins that cluster. Exit codes: 0 done, 2 permanent error, 130 stopped by
    Ctrl-C, 143 stopped otherwise or a worker lost (the same command, or `qflock resume`, goes on).
    """
    from qflock.cli.start import Request, start
    from qflock.training.spec import RunSpec

    display, steps = options.display(quiet, json), options.step_range(profile)
    if job:
        from qflock.deploy.local import local_run

        plan = local_run(job, what, run)
        spec, run, workers = plan.spec, plan.run, plan.workers
    else:
        if not run:
            raise ConfigurationError("Option --run must name a new folder or URL, but is not given")
        qcnn: dict[str, Any] = {"architecture": architecture, "qubits": qubits, "examples": examples}
        full_name, arguments = named(what, qcnn)
        spec = RunSpec(
            full_name, arguments, epochs, batch_size, learning_rate, seed, checkpoint_seconds, keep
        )
    raise typer.Exit(
        start(
            Request(
                spec, run, True, spec.what, workers, start_timeout, restarts, port, verbose, display, steps
            )
        )
    )


def named(what: str, qcnn: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What to train by its full name, and its arguments."""
    from qflock.training.experiment import split_reference

    if what == "qcnn":
        return what, qcnn
    if ":" not in what:
        raise ConfigurationError(f"Argument `what` must be 'qcnn' or 'path/to/file.py:name', but is {what!r}")
    path, name = split_reference(what)
    return f"{path}:{name}", {}
