"""`qflock resume`."""

from __future__ import annotations

import typer

from qflock.cli import options


def resume(
    run: options.RunArgument,
    experiment: options.Trusted = None,
    workers: options.Workers = 1,
    start_timeout: options.StartTimeout = 300.0,
    restarts: options.Restarts = 5,
    port: options.Port = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    profile: options.Profile = "",
) -> None:
    """Go on with an interrupted run at the exact step, with any number of workers.

    Examples:

    * `qflock resume runs/first`

    * `qflock resume gs://bucket/run --workers 2`
    """
    from qflock.cli.start import Request, start
    from qflock.training.run import load_spec, read_status
    from qflock.training.store import Store

    display, steps = options.display(quiet, json), options.step_range(profile)
    store = Store(run)
    spec = load_spec(store)
    if read_status(store).state == "finished":
        typer.echo(f"{store.url} is finished; see `qflock infer {store.url}`")
        return
    raise typer.Exit(
        start(
            Request(
                spec, run, False, experiment, workers, start_timeout, restarts, port, verbose, display, steps
            )
        )
    )
