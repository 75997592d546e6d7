"""A group of worker processes on this machine: start, watch, end. None outlives the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import IO

from qflock.errors import ConfigurationError

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_POLL_SECONDS = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PRINTING = threading.Lock()  # or long lines of two workers mix
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Processes:
    """The workers of one attempt, each in a process group of its own.

    Args:
        work: What each of them does; returns the exit code.
        environments: What each of them sees in `os.environ` beyond what this process sees.
        first_direct: Whether the first one writes to this process's output itself, so that it can draw there or be read by
            a program. What others write is printed line by line, with their number before it.

    Raises:
        ConfigurationError: If the system starts no more processes.
    """

    def __init__(
        self, work: Callable[[], int], environments: Sequence[Mapping[str, str]], first_direct: bool
    ) -> None:
        self._readers: list[threading.Thread] = []
        self.all: list[Fork] = []
        sources: list[tuple[IO[str], IO[str], str]] = []
        # All of them before the first thread begins: a fork takes no thread along, but every lock that one holds.
        for index, environment in enumerate(environments):
            try:
                output = None if first_direct and index == 0 else Output()
                others = [source.fileno() for source, _, _ in sources]
                self.all.append(Fork(work, environment, output, others))
            except OSError as error:
                self.end(grace=0.0)
                for source, _, _ in sources:
                    source.close()
                raise ConfigurationError(
                    f"Cannot start worker {index}: {error.strerror}; use fewer workers, or raise the limit (ulimit -a)"
                ) from error
            if output is not None:
                sources += [(*pair, f"[{index}] ") for pair in output.received()]
        for arguments in sources:
            self._readers.append(threading.Thread(target=_copy, args=arguments, daemon=True))
            self._readers[-1].start()

    def codes(self) -> list[int | None]:
        """Exit code of each worker; None while it runs, negative where a signal ended it."""
        return [process.poll() for process in self.all]

    def signal(self, number: int) -> None:
        """Sends a signal to all that still run."""
        for process in self.all:
            if process.poll() is None:
                os.killpg(process.pid, number)

    def wait(self, seconds: float, unless: Sequence[object] = ()) -> bool:
        """Waits until all have ended; False if some still run after `seconds`, or once there is something in `unless`."""
        end = time.monotonic() + seconds
        while None in self.codes():
            if time.monotonic() > end or unless:
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


class Output:
    """What a forked process writes, standard output and errors apart."""

    def __init__(self) -> None:
        self._pipes = (os.pipe(), os.pipe())

    def use(self) -> None:
        """In the new process: writes into the pipes from now on."""
        for number, (_, end) in enumerate(self._pipes, start=1):
            os.dup2(end, number)
        for end in (end for pipe in self._pipes for end in pipe):
            os.close(end)
        # Not the old ones, which may hold a lock of the process that forked, or lead elsewhere.
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", buffering=1, encoding=old.encoding, errors=old.errors, closefd=False)
            for number, old in ((1, sys.stdout), (2, sys.stderr))
        )

    def received(self) -> list[tuple[IO[str], IO[str]]]:
        """In the process that forked: where to read, and where to print it."""
        for _, end in self._pipes:
            os.close(end)
        return [
            (os.fdopen(end, errors="replace"), target)
            for (end, _), target in zip(self._pipes, (sys.stdout, sys.stderr), strict=True)
        ]


class Fork:
    """A process that runs a function of this one, with everything that is imported already.

    Args:
        action: Returns the exit code.
        environment: What the new process has in `os.environ` beyond what this one has.
        output: Where it writes; where this process does by default.
        unused: Open files of this process that the new one closes: where others read, they must see each writer's end.
    """

    def __init__(
        self,
        action: Callable[[], int],
        environment: Mapping[str, str],
        output: Output | None = None,
        unused: Sequence[int] = (),
    ) -> None:
        self._code: int | None = None
        _flush()
        # Held back until the new process has its own handlers: by those of this one a signal would be noted here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _run_and_exit(partial(_set_up, environment, output, unused, before), action)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
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


def _run_and_exit(prepare: Callable[[], None], action: Callable[[], int]) -> None:
    """Never returns, whatever happens: the frames above belong to the process that forked."""
    code = 1
    try:
        prepare()
        code = int(action())
    except SystemExit as leaving:
        code = _code_of(leaving)
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _set_up(
    environment: Mapping[str, str], output: Output | None, unused: Sequence[int], mask: Iterable[int]
) -> None:
    """Makes a fork a process of its own."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.setpgid(0, 0)
    die_with_parent()
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for file in unused:
        os.close(file)
    if output is not None:
        output.use()
    os.environ.update(environment)


def _code_of(leaving: SystemExit) -> int:
    """As Python itself leaves with it."""
    if isinstance(leaving.code, str):
        print(leaving.code, file=sys.stderr)
        return 1
    return leaving.code or 0


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # nobody may listen any more
            stream.flush()


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks for a signal when the parent ends, so that even a killed launcher leaves no worker behind (Linux)."""
    if _LIBC is not None:
        _LIBC.prctl(_SET_DEATH_SIGNAL, number)


def _copy(source: IO[str], target: IO[str], prefix: str) -> None:
    with source:
        for line in source:
            # Where nobody listens, the workers still want to get rid of it.
            with _PRINTING, suppress(OSError):
                target.write(f"{prefix}{line.rstrip()}\n")
                target.flush()
