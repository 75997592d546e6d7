"""`qflock train`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qflock.cli import options
from qflock.errors import ConfigurationError


def train(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="`qcnn`, or `my_file.py:experiment` for your own model.")
    ] = "",
    run: Annotated[
        str, typer.Option(help="New folder or URL (gs://, s3://) that holds everything about the run.")
    ] = "",
    job: Annotated[str, typer.Option(help="Job file: what to train and where; in place of WHAT.")] = "",
    architecture: Annotated[str, typer.Option(help="Of the QCNN: hybrid, multi-filter or full.")] = "hybrid",
    qubits: Annotated[int, typer.Option(help="Width of the QCNN, at least 4.")] = 8,
    examples: Annotated[int, typer.Option(help="Circuits for the QCNN; 70 % are for training.")] = 160,
    epochs: Annotated[int, typer.Option(help="Passes over the training examples.")] = 50,
    batch_size: Annotated[int, typer.Option(help="Examples of one step, over all workers together.")] = 32,
    learning_rate: Annotated[float, typer.Option(help="Of the optimiser.")] = 0.02,
    seed: Annotated[
        int, typer.Option(help="Of data, initial weights and order. Same seed, same losses.")
    ] = 0,
    checkpoint_seconds: Annotated[float, typer.Option(help="Longest time between two checkpoints.")] = 60.0,
    keep: Annotated[int, typer.Option(help="How many checkpoints are kept.")] = 3,
    workers: options.Workers = 1,
    start_timeout: options.StartTimeout = 300.0,
    restarts: options.Restarts = 5,
    port: options.Port = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a model on one or several workers; the losses are the same for any number of them.

    Examples:

    * `qflock train qcnn --workers 2 --run runs/first`

    * `qflock train qcnn --architecture full --qubits 6 --epochs 20 --run runs/full`

    * `qflock train my_file.py:experiment --epochs 10 --run runs/mine`

    * `qflock train --job qflock.toml`

    Where TF_CONFIG is set, the same command joins that cluster. Exit codes: 0 done, 2 permanent error, 143 stopped or
    a worker lost (the same command, or `qflock resume`, goes on).
    """
    from qflock.cli.start import Request, start
    from qflock.training.spec import RunSpec

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
        start(Request(spec, run, True, spec.what, workers, start_timeout, restarts, port, verbose, quiet))
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
