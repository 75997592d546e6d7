"""`qflock runs`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from qflock.errors import RunError, StoreError

if TYPE_CHECKING:
    from qflock.training.store import Store


def runs(url: Annotated[str, typer.Argument(metavar="URL", help="Folder or URL that holds runs.")]) -> None:
    """List runs with their state, last step, loss and age.

    Example:

    * `qflock runs runs/`
    """
    from qflock.training.run import SPEC
    from qflock.training.store import Store

    parent = Store(url)
    rows = [("run", "state", "step", "loss", "age")]
    for name in parent.list(""):
        if parent.exists(f"{name}/{SPEC}"):
            rows.append((name, *_described(Store(f"{parent.url}/{name}"))))
    if len(rows) == 1:
        typer.echo(f"no runs in {parent.url}")
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _described(store: Store) -> tuple[str, str, str, str]:
    """State, step, loss and age; a run that is damaged hides no other one."""
    from qflock.training.run import read_status

    try:
        status = read_status(store)
    except StoreError:
        raise
    except RunError:
        return "damaged", "", "", ""
    loss = "" if status.loss is None else f"{status.loss:.4f}"
    age = _age(time.time() - status.time) if status.time else ""
    return status.state, str(status.step), loss, age


def _age(seconds: float) -> str:
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
