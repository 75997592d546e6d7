"""A group of worker processes on this machine: start, watch, end. None outlives the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Protocol

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_POLL_SECONDS = 0.05
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Process(Protocol):
    """What is needed of a process: `subprocess.Popen` has it too."""

    pid: int

    def poll(self) -> int | None:
        """Exit code; None while it runs, negative where a signal ended it."""
        ...

    def wait(self) -> int:
        """Exit code, once it has ended."""
        ...


class Processes:
    """The workers of one attempt, each in a process group of its own.

    Args:
        command: Program and arguments, the same for all.
        environments: One full environment per worker.
        first_direct: Whether the first one writes to this process's output itself, so that it can draw there or be read by
            a program.
        alone: What a single worker does, in place of the command: it starts at once, as a fork of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        environments: Sequence[Mapping[str, str]],
        first_direct: bool,
        alone: Callable[[], int] | None = None,
    ) -> None:
        self._readers: list[threading.Thread] = []
        self.all: list[Process] = []
        if alone is not None:
            self.all.append(Fork(alone, environments[0]))
            return
        for index, environment in enumerate(environments):
            direct = first_direct and index == 0
            self.all.append(self._start(command, environment, None if direct else f"[{index}] "))

    def codes(self) -> list[int | None]:
        """Exit code of each worker; None while it runs, negative where a signal ended it."""
        return [process.poll() for process in self.all]

    def signal(self, number: int) -> None:
        """Sends a signal to all that still run."""
        for process in self.all:
            if process.poll() is None:
                os.killpg(process.pid, number)

    def wait(self, seconds: float) -> bool:
        """Waits until all have ended; False if some still run after `seconds`."""
        end = time.monotonic() + seconds
        while None in self.codes():
            if time.monotonic() > end:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def end(self, grace: float) -> None:
        """Waits `grace` seconds, ends what still runs, and prints what is left of the output."""
        self.wait(grace)
        for process in self.all:
            with suppress(ProcessLookupError, PermissionError):  # also what a worker has started itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for reader in self._readers:
            reader.join(timeout=5)

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], prefix: str | None
    ) -> subprocess.Popen[str]:
        pipe = None if prefix is None else subprocess.PIPE
        process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace",
            process_group=0, preexec_fn=_die_with_parent,
        )  # fmt: skip
        for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if source is not None:
                reader = threading.Thread(target=_copy, args=(source, target, prefix), daemon=True)
                reader.start()
                self._readers.append(reader)
        return process


class Fork:
    """A process that runs a function of this one, with everything that is imported already.

    Args:
        action: Returns the exit code.
        environment: Of the new process.
    """

    def __init__(self, action: Callable[[], int], environment: Mapping[str, str]) -> None:
        self._code: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run_and_exit(action, environment)
        with suppress(ProcessLookupError, PermissionError):  # on both sides: neither must wait for the other
            os.setpgid(self.pid, self.pid)

    def poll(self) -> int | None:
        """Exit code; None while it runs, negative where a signal ended it."""
        return self._ask(os.WNOHANG)

    def wait(self) -> int:
        """Exit code, once it has ended."""
        code = self._ask(0)
        assert code is not None, "waiting has an end only when the process has ended"
        return code

    def _ask(self, options: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, options)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def _run_and_exit(action: Callable[[], int], environment: Mapping[str, str]) -> None:
    """Never returns, whatever happens: the frames above belong to the process that forked."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        _die_with_parent()
        os.environ.update(environment)
        code = action()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_with_parent() -> None:
    """Even a killed launcher leaves no worker behind (Linux)."""
    if _LIBC is not None:
        _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _copy(source: IO[str], target: IO[str], prefix: str | None) -> None:
    with source:
        for line in source:
            target.write(f"{prefix or ''}{line.rstrip()}\n")
            target.flush()
