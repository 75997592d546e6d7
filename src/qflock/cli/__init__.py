"""The command line `qflock`. Importing it loads neither TensorFlow nor Cirq's heavier parts."""

from __future__ import annotations

import atexit
import gc
import os
import sys


def main() -> None:
    """Entry point: runs the command and turns qflock's own errors into one line and an exit code."""
    _open_missing_streams()
    # Importing TensorFlow and Cirq makes half a million objects and no garbage. Searching them for some, again and again
    # and once more at the end, takes 2.4 of 5.6 s. A training sets the usual threshold again.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    from qflock.cli.app import app
    from qflock.errors import QflockError

    try:
        app()
    except QflockError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _open_missing_streams() -> None:
    """Closed standard streams lead nowhere, so that no file of a run takes their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open as long as the process lives
