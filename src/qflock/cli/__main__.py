"""`python -m qflock.cli` is the same as `qflock`."""

from __future__ import annotations

from qflock.cli import main

if __name__ == "__main__":
    main()
