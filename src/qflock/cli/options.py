"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from qflock.errors import ConfigurationError
from qflock.training.progress import Display
from qflock.training.step_range import StepRange

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Folder or URL (gs://, s3://) of the run.")]
What = Annotated[
    str, typer.Argument(metavar="WHAT", help="`qcnn`, or `my_file.py:experiment` for your own model.")
]
Architecture = Annotated[str, typer.Option(help="Of the QCNN: hybrid, multi-filter or full.")]
Qubits = Annotated[int, typer.Option(help="Width of the QCNN, at least 4.")]
Examples = Annotated[int, typer.Option(help="Circuits for the QCNN; 70 % are for training.")]
Epochs = Annotated[int, typer.Option(help="Passes over the training examples.")]
BatchSize = Annotated[int, typer.Option(help="Examples of one step, over all workers together.")]
CheckpointSeconds = Annotated[float, typer.Option(help="Longest time between two checkpoints.")]
Workers = Annotated[
    int, typer.Option(help="Worker processes on this machine. Without effect where TF_CONFIG is set.")
]
StartTimeout = Annotated[float, typer.Option(help="Seconds to wait for the other workers at the start.")]
Restarts = Annotated[int, typer.Option(help="Restarts in a row without progress before giving up.")]
Port = Annotated[
    int | None,
    typer.Option(help="First of the workers' consecutive ports; free ones are picked by default."),
]
Trusted = Annotated[
    str | None,
    typer.Option(
        "--experiment",
        help="The file.py:name that the run was made from; needed because runs are not executed.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show TensorFlow's own messages.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Show progress as one JSON object a line.")]
Profile = Annotated[
    str,
    typer.Option(
        metavar="FIRST,LAST",
        help="Steps that every worker records for TensorBoard's profiler, such as 10,20.",
    ),
]


def display(quiet: bool, json: bool) -> Display:
    """How progress is shown.

    Raises:
        ConfigurationError: If both options are given.
    """
    if quiet and json:
        raise ConfigurationError("Options --quiet and --json exclude each other, but both are given")
    return Display.quiet if quiet else Display.json if json else Display.full


def step_range(text: str) -> StepRange | None:
    """The steps that --profile names, if any."""
    return StepRange.parse(text) if text else None
