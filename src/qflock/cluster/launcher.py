"""Runs a function as several workers on this machine, and starts all of them again when one is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from qflock.cluster.identity import Identity
from qflock.cluster.ports import check_port, free_ports
from qflock.cluster.processes import Processes
from qflock.cluster.supervision import FOLDER_VARIABLE, Failure, failure_of, last_step
from qflock.engine.memory import readable
from qflock.engine.processor import available_memory
from qflock.errors import ConfigurationError

DONE, PERMANENT, INTERRUPTED, AGAIN = 0, 2, 130, 143
STOP_SECONDS, LOST_SECONDS = 10.0, 1.0
LONGEST_PAUSE = 30.0
LEAST_TEMPORARY_BYTES = 16 << 20
# What is imported is shared, the rest is each worker's own: 130 MiB with the smallest model, and less is not refused.
IMPORTED_BYTES, LEAST_WORKER_BYTES = 700 << 20, 100 << 20
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Launch:
    """What to start.

    Args:
        work: What each worker does; returns its exit code. It runs in a fork of this process, which should have imported all
            that workers need, once for all of them and for every new start, but must not have computed with threads.
        workers: How many.
        restarts: How often in a row all are started again without any progress in between.
        port: First of consecutive ports, or None for free ones.
        raw: Whether the first worker's output is passed on as it is, without its number before each line.
    """

    work: Callable[[], int]
    workers: int
    restarts: int = 5
    port: int | None = None
    raw: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigurationError(f"Argument `workers` must be at least 1, but is {self.workers}")
        if self.workers > 1:
            self._check_memory()
        if self.restarts < 0:
            raise ConfigurationError(f"Argument `restarts` must be at least 0, but is {self.restarts}")
        if self.port is not None and not 0 < self.port <= 65536 - self.workers:
            raise ConfigurationError(
                f"Argument `port` must leave room for {self.workers} ports up to 65535, but is {self.port}"
            )

    def _check_memory(self) -> None:
        needed, free = IMPORTED_BYTES + self.workers * LEAST_WORKER_BYTES, available_memory()
        if needed > free:
            raise ConfigurationError(
                f"Argument `workers` must fit into memory, but {self.workers} processes need {readable(needed)} at least and "
                f"there are {readable(free)}"
            )


@dataclass(frozen=True)
class _Outcome:
    code: int
    reason: str
    failure: Failure | None = None


def launch(request: Launch) -> int:
    """Runs the workers until all are done.

    Returns:
        0 when all are done, 2 after a permanent error, 130 after Ctrl-C, 143 when stopped from outside or out of restarts.

    Raises:
        ConfigurationError: If a port is taken, there is no room for temporary files, or the system starts no more processes.
    """
    _check_temporary_folder()
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    # If it were ignored, as some shells have it, no exit code would be kept.
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        return _attempts(request, stopping)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_temporary_folder() -> None:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < LEAST_TEMPORARY_BYTES:
        raise ConfigurationError(
            f"TMPDIR must have {readable(LEAST_TEMPORARY_BYTES)} for temporary files at least, but {folder} has "
            f"{readable(free)}; make room there, or set another TMPDIR"
        )


def _attempts(request: Launch, stopping: list[int]) -> int:
    furthest, without_progress, previous = 0, 0, None
    while True:
        with tempfile.TemporaryDirectory(prefix="qflock-workers-") as name:
            outcome = _attempt(request, Path(name), stopping)
            step = last_step(Path(name))
        if outcome.code in (DONE, PERMANENT) or stopping:
            return _ended(outcome, told=request.workers == 1)
        failure = outcome.failure
        if failure is not None and failure.same_as(previous):
            _say(
                f"error: {outcome.reason}; the same happened before at step {failure.step}\n{failure.traceback}"
            )
            return PERMANENT
        previous = failure
        without_progress = 0 if step > furthest else without_progress + 1
        furthest = max(furthest, step)
        if without_progress > request.restarts or not request.restarts:
            _say(f"error: {outcome.reason}; given up after {without_progress} restarts without progress")
            return AGAIN
        pause = min(2.0**without_progress / 2, LONGEST_PAUSE)
        who = "all workers start" if request.workers > 1 else "it starts"
        _say(f"{outcome.reason}; {who} again in {pause:g} s from the newest checkpoint")
        if _sleep(pause, stopping):
            return _stopped(stopping)


def _attempt(request: Launch, folder: Path, stopping: list[int]) -> _Outcome:
    direct = request.workers == 1 or request.raw or sys.stdout.isatty()
    processes = Processes(partial(_in_folder, folder, request.work), _environments(request, folder), direct)
    try:
        while True:
            codes = processes.codes()
            if stopping:
                return _stop(processes, stopping)
            if all(code == DONE for code in codes):
                return _Outcome(DONE, "done")
            if ended := {code for code in codes if code not in (None, DONE)}:
                # A worker that was asked to stop brings the others to the same step; give them the time.
                grace = STOP_SECONDS if ended == {AGAIN} else 0.5 if PERMANENT in ended else 0.0
                processes.wait(grace, stopping)
                if stopping:
                    return _stop(processes, stopping)
                index, code = _cause(processes.codes())
                return _explain(index, code, failure_of(folder, index), last_step(folder))
            time.sleep(_POLL_SECONDS)
    finally:
        processes.end(grace=0.0)


def _in_folder(folder: Path, work: Callable[[], int]) -> int:
    """Temporary files of a worker, which may be ended at any moment, are removed with the attempt's folder."""
    tempfile.tempdir = str(folder)
    return work()


def _stop(processes: Processes, stopping: list[int]) -> _Outcome:
    """The workers store their state and leave; a second request ends them at once."""
    asked = len(stopping)
    processes.signal(signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while time.monotonic() < end and len(stopping) == asked and not processes.wait(_POLL_SECONDS):
        if any(code is not None and code < 0 for code in processes.codes()):
            # It had not begun to train, so there is nothing to store; the others may be waiting for it inside of TensorFlow.
            end = min(end, time.monotonic() + LOST_SECONDS)
    codes = processes.codes()
    if all(code == DONE for code in codes):
        return _Outcome(DONE, "done")
    return _Outcome(_stopped(stopping), "stopped as asked")


def _stopped(stopping: list[int]) -> int:
    return INTERRUPTED if stopping[0] == signal.SIGINT else AGAIN


def _environments(request: Launch, folder: Path) -> list[dict[str, str]]:
    """What each worker's environment has beyond this process's."""
    supervised = {FOLDER_VARIABLE: str(folder)}
    if request.workers == 1:
        return [supervised]
    if request.port is None:
        ports = free_ports(request.workers)
    else:
        ports = tuple(range(request.port, request.port + request.workers))
        for port in ports:
            check_port(port)
    addresses = tuple(f"localhost:{port}" for port in ports)
    threads = str(max(1, len(os.sched_getaffinity(0)) // request.workers))
    # The second one is for libraries that a worker loads by itself.
    shared = {name: os.environ.get(name, threads) for name in ("QFLOCK_THREADS", "OMP_NUM_THREADS")}
    return [
        supervised | shared | {"TF_CONFIG": Identity(addresses, index).tf_config()}
        for index in range(request.workers)
    ]


def _cause(codes: Sequence[int | None]) -> tuple[int, int]:
    """The worker whose end explains that of the others, who may be seen to leave before it: they have lost it."""
    ended = [(index, code) for index, code in enumerate(codes) if code is not None and code != DONE]
    return min(ended, key=lambda one: (one[1] == AGAIN, one[1] != PERMANENT))


def _explain(index: int, code: int, failure: Failure | None, step: int) -> _Outcome:
    how = f"was ended by {_signal_name(-code)}" if code < 0 else f"left with code {code}"
    why = f": {failure.message}" if failure else ""
    kept = code if code in (PERMANENT, AGAIN) else 1
    if failure is None and code > 0 and kept == 1:  # by itself, as a program does that calls `sys.exit`
        failure = Failure(step, how, traceback="It left without an error.")
    return _Outcome(kept, f"worker {index} {how}{why}", failure)


def _ended(outcome: _Outcome, told: bool) -> int:
    """A single worker has told itself why, on the same stream."""
    if told:
        return outcome.code
    if outcome.code == PERMANENT:
        _say(f"error: {outcome.reason}")
    elif outcome.code != DONE:
        _say(outcome.reason)
    return outcome.code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _sleep(seconds: float, stopping: list[int]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not stopping:
        time.sleep(_POLL_SECONDS)
    return bool(stopping)


def _say(text: str) -> None:
    with suppress(OSError):  # nobody may listen any more
        print(text, file=sys.stderr, flush=True)
