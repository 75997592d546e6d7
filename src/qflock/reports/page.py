"""A page of sections with text, tables and pictures: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qflock.reports.style import Picture
from qflock.training.store import Store

_TEMPLATE = "page.html.j2"
_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?( ?[A-Za-z%/]{1,5})?")


@dataclass(frozen=True)
class Part:
    """What stands under one heading; each field may be empty.

    Args:
        heading: Names the run where there are several.
        note: A sentence.
        code: A command.
        header: Of the table.
        rows: Of the table; the first cell names the row.
        pictures: In their order.
    """

    heading: str = ""
    note: str = ""
    code: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Section:
    """A title and its parts."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Page:
    """All of it."""

    title: str
    subtitle: str
    sections: Sequence[Section]


def render(page: Page) -> str:
    """The page as HTML. Every value is escaped: names of runs and metrics come from whoever made the run."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode("ascii")
    environment.tests["number_text"] = lambda text: _NUMBER.fullmatch(text) is not None
    return environment.get_template(_TEMPLATE).render(page=page)


def write(page: Page, output: Store, name: str) -> None:
    """Stores the page as `name`, and each picture as a PNG file beside it."""
    for section in page.sections:
        for part in section.parts:
            for picture in part.pictures:
                output.write(f"{picture.name}.png", picture.png)
    output.write(name, render(page).encode())
