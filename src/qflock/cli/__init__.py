"""The command line `qflock`. Importing it loads neither TensorFlow nor Cirq's heavier parts."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: runs the command and turns qflock's own errors into one line and an exit code."""
    from qflock.cli.app import app
    from qflock.errors import QflockError

    try:
        app()
    except QflockError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
