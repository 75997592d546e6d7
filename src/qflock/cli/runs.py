"""`qflock runs`."""

from __future__ import annotations

import time
from typing import Annotated

import typer


def runs(url: Annotated[str, typer.Argument(metavar="URL", help="Folder or URL that holds runs.")]) -> None:
    """List runs with their state, last step, loss and age.

    Example:

    * `qflock runs runs/`
    """
    from qflock.training.run import SPEC, read_status
    from qflock.training.store import Store

    parent = Store(url)
    rows = [("run", "state", "step", "loss", "age")]
    for name in parent.list(""):
        if parent.exists(f"{name}/{SPEC}"):
            status = read_status(Store(f"{parent.url}/{name}"))
            loss = "" if status.loss is None else f"{status.loss:.4f}"
            age = _age(time.time() - status.time) if status.time else ""
            rows.append((name, status.state, str(status.step), loss, age))
    if len(rows) == 1:
        typer.echo(f"no runs in {parent.url}")
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _age(seconds: float) -> str:
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
