"""The command line, killed at an operation of its checkpoints: OPERATION, then the arguments of `qflock`."""

from __future__ import annotations

import sys

from qflock.cli import main
from tests.training.killing import kill_at

if __name__ == "__main__":
    kill_at(int(sys.argv.pop(1)), "/checkpoints")
    main()
