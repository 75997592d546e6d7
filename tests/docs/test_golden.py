"""Command line and public names change on purpose only: both are compared with golden files.

`make golden` rewrites the files.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from qflock.cli.app import app

GOLDEN = Path(__file__).parent / "golden"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"


def documented_names() -> list[str]:
    """What the reference page lists."""
    return re.findall(r"^::: (\S+)$", REFERENCE.read_text(), flags=re.MULTILINE)


def describe(name: str) -> str:
    """Name and signature of a function, or name, bases, signature and public members of a class."""
    value = pkgutil.resolve_name(name)
    if not inspect.isclass(value):
        return f"{name}{inspect.signature(value)}\n"
    bases = ", ".join(base.__name__ for base in value.__bases__)
    members = sorted(key for key in vars(value) if not key.startswith("_"))
    lines = [
        f"class {name}({bases})",
        f"    __init__{_signature(value.__init__)}",
        *(f"    {key}" for key in members),
    ]
    return "\n".join(lines) + "\n"


def _signature(function: Any) -> str:
    try:
        return str(inspect.signature(function))
    except ValueError:
        return "(...)"


def command_lines() -> str:
    """Every command with its help and parameters, without the layout, which the library changes."""
    group = typer.main.get_command(app)
    return "\n".join(_command(name, command) for name, command in _commands("qflock", group))


def _commands(name: str, command: Any) -> list[tuple[str, Any]]:
    subcommands = getattr(command, "commands", {})
    return [
        (name, command),
        *(row for key, sub in subcommands.items() for row in _commands(f"{name} {key}", sub)),
    ]


def _command(name: str, command: Any) -> str:
    rows = [f"{name}: {inspect.cleandoc(command.help or '')}"]
    for parameter in command.params:
        default = "" if callable(parameter.default) else f" [{parameter.default}]"
        required = " (required)" if parameter.required else default
        rows.append(f"    {'/'.join(parameter.opts)}: {getattr(parameter, 'help', None) or ''}{required}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("file", "produce"),
    [
        ("api.txt", lambda: "\n".join(map(describe, documented_names()))),
        ("command_line.txt", command_lines),
    ],
)
def test_golden(file: str, produce: Any, request: pytest.FixtureRequest) -> None:
    path, now = GOLDEN / file, produce()
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now)
    assert now == path.read_text(), f"{file} has changed; run `make golden` if that is meant"


@pytest.mark.parametrize("module", ["qflock", "qflock.layers"])
def test_every_exported_name_is_documented(module: str) -> None:
    exported = importlib.import_module(module).__all__
    undocumented = [name for name in exported if f"{module}.{name}" not in documented_names()]
    assert undocumented == []


def test_every_command_is_in_the_reference() -> None:
    commands = _commands("qflock", typer.main.get_command(app))
    leaves = [name for name, command in commands if not hasattr(command, "commands")]
    page = REFERENCE.read_text()
    assert [name for name in leaves if not re.search(rf"`{name}[ `]", page)] == []
