"""All commands in one application."""

from __future__ import annotations

import typer

from qflock.cli.deploy import app as deploy
from qflock.cli.doctor import doctor
from qflock.cli.infer import infer
from qflock.cli.infra import app as infra
from qflock.cli.plan import plan
from qflock.cli.report import report
from qflock.cli.resume import resume
from qflock.cli.runs import runs
from qflock.cli.train import train

app = typer.Typer(
    name="qflock",
    help="Train quantum machine-learning models, on one machine or many.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _command in (train, infer, resume, runs, report, plan, doctor):
    app.command()(_command)
app.add_typer(deploy)
app.add_typer(infra)
