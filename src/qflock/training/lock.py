"""One training at a time writes a run in a folder of this machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from qflock.errors import RunError
from qflock.training.store import Store

NAME = ".lock"


@contextmanager
def only_writer(store: Store) -> Iterator[None]:
    """Holds the run until the block, or the process, ends; in a bucket nothing can be held.

    Args:
        store: Of the run, which exists.

    Raises:
        RunError: If another process trains it.
    """
    folder = store.local_path()
    if folder is None:
        yield
        return
    with open(folder / NAME, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise RunError(
                f"{store.url} is being trained by process {file.read() or '?'} of this machine; stop that one first, or wait for it"
            ) from None
        except OSError:  # some network file systems have no locks
            pass
        else:
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield
