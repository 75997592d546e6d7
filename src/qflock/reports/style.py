"""How plots look: colours that colour-blind readers tell apart, with a line style and a marker each for print."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from qflock.errors import ConfigurationError

# The palette of M. Okabe and K. Ito, "Color universal design" (2008), without its yellow, which print loses.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "os^Dv*P"
HATCHES = ("//", "..", "xx", "\\\\", "++", "oo", "--")
LINE_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Args:
        name: Of its files, without the ending.
        caption: What it shows; also for readers who do not see it.
        svg: For the page.
        png: For slides and mail.
    """

    name: str
    caption: str
    svg: bytes
    png: bytes


def require_report_packages() -> None:
    """Raises `ConfigurationError` with the fix where a package for reports is missing."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"Package {missing.name!r} is missing, which pages and plots need; "
            "install it with `pip install 'qflock[report]'`"
        ) from None


def draw(
    name: str,
    caption: str,
    size: tuple[float, float],
    paint: Callable[[Any], None],
    layout: Literal["constrained"] | None = "constrained",
) -> Picture:
    """A picture of what `paint` puts on a figure.

    Args:
        name: Of the picture's files.
        caption: What it shows.
        size: Width and height in inches.
        paint: Takes a `matplotlib.figure.Figure`.
        layout: None where `paint` places everything itself.
    """
    with _settings():
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout=layout)
        paint(figure)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=150)
    return Picture(name, caption, svg.getvalue(), png.getvalue())


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib

    settings: Any = {
        "text.parse_math": False,  # names of runs and metrics are text, also with dollar signs
        "svg.hashsalt": "qflock",
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 10,
    }
    with matplotlib.rc_context(settings):
        yield


def logarithmic(axes: Any, names: str) -> None:
    """Makes axes logarithmic: "x", "y" or "xy"; their numbers get prefixes such as k and M."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    for name in names:
        axes.set(**{f"{name}scale": "log"})
        axis = getattr(axes, f"{name}axis")
        axis.set_major_formatter(EngFormatter(sep=""))
        axis.set_minor_formatter(NullFormatter())


def legend_text(text: str) -> str:
    """A label as it is, for legends, which drop those that start with an underscore; long ones are cut in the middle."""
    short = text if len(text) <= 48 else f"{text[:23]}…{text[-23:]}"
    return f" {short}" if short.startswith("_") else short
