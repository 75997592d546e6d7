"""Progress of a long evaluation, for a program or for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

Progress = Callable[[float], None]
"""Called with the share of the work that is done, 0 to 1, never less than before."""

_QUIET_SECONDS = 2.0


def section(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """The progress of a piece of the work, from the share `begin` to the share `end` of the whole."""
    if progress is None:
        return None
    whole = progress
    return lambda part: whole(begin + (end - begin) * part)


@contextmanager
def progress_bar(wanted: bool | None, title: str) -> Iterator[Progress | None]:
    """A bar on the standard error stream, with the time left; it appears once the work has taken two seconds.

    Args:
        wanted: Whether there is one; None for where the stream is a terminal.
        title: Shown in front of it.

    Yields:
        What to call with the share of the work that is done, or None.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield None
        return
    form = "{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
    with tqdm(total=1.0, desc=title, delay=_QUIET_SECONDS, bar_format=form, file=sys.stderr) as bar:
        yield lambda part: bar.update(part - bar.n)
