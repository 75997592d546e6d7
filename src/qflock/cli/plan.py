"""`qflock plan`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qflock.cli import options


def plan(
    what: options.What = "qcnn",
    architecture: options.Architecture = "hybrid",
    qubits: options.Qubits = 8,
    examples: options.Examples = 160,
    epochs: options.Epochs = 50,
    batch_size: options.BatchSize = 32,
    workers: Annotated[int, typer.Option(help="Workers, each on a node of its own.")] = 2,
    node_type: Annotated[
        list[str] | None,
        typer.Option(help="Where they could run, such as n2-standard-8; several are compared."),
    ] = None,
    region: Annotated[str, typer.Option(help="Of the cloud, for prices.")] = "us-central1",
    spot: Annotated[bool, typer.Option("--spot", help="Prices of nodes that may be taken away.")] = False,
    price_per_hour: Annotated[
        float | None, typer.Option(help="Dollars of one node, in place of the table's.")
    ] = None,
    preemptions_per_hour: Annotated[
        float, typer.Option(help="How often one node is taken away or fails.")
    ] = 0.0,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    network_latency: Annotated[float, typer.Option(help="Seconds of one hop between two nodes.")] = 1e-4,
    node_start: Annotated[float, typer.Option(help="Seconds until a node is there with its image.")] = 60.0,
    seconds: Annotated[
        float, typer.Option(help="How long each measurement may take, without start-up.")
    ] = 4.0,
    output: Annotated[
        str | None, typer.Option(help="Folder or URL for a page, its plots and the figures as JSON.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure this machine for a few seconds and say what a training will take, before it starts.

    Memory, seconds per step and epoch, the widest model that fits, cost on node types, and 1 to 1000 workers.

    Examples:

    * `qflock plan --qubits 12 --examples 1000 --workers 4`

    * `qflock plan --architecture full --qubits 24 --node-type n2-standard-32 --spot --output plans/full`
    """
    from qflock.cluster.strategy import quiet_tensorflow

    quiet_tensorflow()

    from qflock.cli.train import named
    from qflock.planning.plan import Request, make_plan
    from qflock.training.spec import RunSpec

    qcnn: dict[str, Any] = {"architecture": architecture, "qubits": qubits, "examples": examples}
    full_name, arguments = named(what, qcnn)
    spec = RunSpec(full_name, arguments, epochs, batch_size, checkpoint_seconds=checkpoint_seconds)
    given = {"node_types": tuple(node_type)} if node_type else {}
    request = Request(
        spec, full_name, workers, region=region, spot=spot, price_per_hour=price_per_hour,
        preemptions_per_hour=preemptions_per_hour, network_latency=network_latency, node_start=node_start,
        seconds=seconds, **given,
    )  # fmt: skip
    if output:
        from qflock.reports.style import require_report_packages

        require_report_packages()
    found = make_plan(request, lambda text: None if quiet else typer.echo(f"{text} …", err=True))
    if as_json:
        typer.echo(found.to_json())
    else:
        from rich.console import Console

        from qflock.planning.show import print_plan

        print_plan(found, Console())
    if output:
        from qflock.planning.picture import write_plan

        typer.echo(write_plan(found, output), err=as_json)
