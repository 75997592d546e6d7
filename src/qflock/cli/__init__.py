"""The command line `qflock`. Importing it loads neither TensorFlow nor Cirq's heavier parts."""

from __future__ import annotations

import atexit
import gc
import sys


def main() -> None:
    """Entry point: runs the command and turns qflock's own errors into one line and an exit code."""
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
