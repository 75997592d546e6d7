"""`qflock profile`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from qflock.cli import options
from qflock.errors import ConfigurationError

LONGEST = 600.0
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "min": 60.0}


def profile(
    run: options.RunArgument,
    duration: Annotated[str, typer.Option(help="How long, such as 500ms, 2s or 1min.")] = "2s",
) -> None:
    """Capture what all workers of a running training do, into the run; see it with `qflock tensorboard`.

    Example:

    * `qflock profile runs/first --duration 2s`
    """
    seconds = seconds_of(duration)
    from qflock.cluster.strategy import quiet_tensorflow

    quiet_tensorflow()
    from qflock.cluster.profiling import capture
    from qflock.training.store import Store

    captured = capture(Store(run), seconds)
    for worker, size in captured.sizes.items():
        typer.echo(f"worker {worker}  {size} bytes")
    for worker, address in captured.silent.items():
        typer.echo(f"worker {worker}  no answer from {address}", err=True)
    typer.echo(f"captured as {captured.session}; see it with `qflock tensorboard {run}`")


def seconds_of(text: str) -> float:
    """A duration in seconds.

    Raises:
        ConfigurationError: If it is not one between 1 ms and 10 min.

    Example:
        >>> seconds_of("500ms")
        0.5
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|)\s*", text)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0.001 <= seconds <= LONGEST:
        raise ConfigurationError(
            f"Option --duration must be 1ms to 10min, written such as 500ms, 2s or 1min, but is {text!r}"
        )
    return seconds
