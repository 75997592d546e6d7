"""`qflock report`."""

from __future__ import annotations

from typing import Annotated

import typer

from qflock.cli import options


def report(
    run: options.RunArgument,
    compare: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="Another run to put beside it; may be given several times."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Folder or URL to write to; `report` in the run by default.")
    ] = None,
    experiment: options.Trusted = None,
    verbose: options.Verbose = False,
) -> None:
    """Write a page about a run: curves, predictions, circuits, times, versions, and the command to repeat it.

    One HTML file that needs no network, and a PNG file of each plot beside it.

    Examples:

    * `qflock report runs/first`

    * `qflock report runs/first --compare runs/second --output pages/both`
    """
    from qflock.cluster.strategy import quiet_tensorflow

    if not verbose:
        quiet_tensorflow()

    from qflock.reports.report import write_report

    typer.echo(write_report([run, *(compare or [])], output, experiment))
