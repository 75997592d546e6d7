"""The one entry point of a worker: joins the others, trains, and turns every way to fail into an exit code."""

from __future__ import annotations

import signal
import sys
import traceback
from types import FrameType

from qflock.cluster.identity import Identity
from qflock.cluster.peers import Peers
from qflock.cluster.profiling import serve_profiles
from qflock.cluster.strategy import join, peer_lost
from qflock.cluster.supervision import Reporter
from qflock.errors import QflockError
from qflock.training.progress import Display
from qflock.training.spec import RunSpec
from qflock.training.step_range import StepRange
from qflock.training.store import Store

UNFORESEEN, AGAIN = 1, 143


def run_worker(
    spec: RunSpec,
    store: Store,
    identity: Identity | None,
    trusted: str | None,
    start_timeout: float,
    display: Display,
    profile: StepRange | None = None,
) -> int:
    """Trains as one worker.

    Args:
        spec: What to train.
        store: Where.
        identity: Of this worker; None for a training on its own.
        trusted: The `file.py:name` that the user gave for an experiment of their own.
        start_timeout: Seconds to wait for the other workers.
        display: How the chief shows progress.
        profile: Steps that every worker records for the profiler, if any.

    Returns:
        The exit code: 0 done, 1 unforeseen, 2 permanent, 143 start again.
    """
    me = identity or Identity()
    reporter = Reporter(me.index)
    try:
        from qflock.training.loop import Worker, train
        from qflock.training.ready import experiment_of

        strategy = join(identity, start_timeout)
        # Only now, since TensorFlow takes SIGTERM for itself while it joins. Until here a signal ends the process at once.
        stop = _stop_on_signals()
        serve_profiles(store, me)
        worker = Worker(me.index, me.count, strategy, lambda: bool(stop), reporter.on_step, Peers(me).alive)
        train(experiment_of(spec, trusted), spec, store, worker, display, profile)
    except QflockError as error:
        return _fail(store, me, reporter, error.exit_code, str(error))
    except Exception as error:
        if me.count > 1 and peer_lost(error):
            return _fail(store, me, reporter, AGAIN, f"another worker was lost ({type(error).__name__})")
        line = traceback.format_exception_only(error)[-1].strip().splitlines()[-1].strip()
        return _fail(store, me, reporter, UNFORESEEN, line, traceback.format_exc())
    return 0


def _stop_on_signals() -> list[int]:
    """Signals only leave a note, which the loop reads between two steps."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if number in noted:  # asked for the second time: at once
            sys.exit(AGAIN)
        noted.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    return noted


def _fail(store: Store, me: Identity, reporter: Reporter, code: int, message: str, trace: str = "") -> int:
    from qflock.training.run import write_status

    reporter.failed(message, trace)
    print(trace + f"error: {message}", file=sys.stderr, flush=True)
    if me.chief:
        try:
            write_status(store, "preempted" if code == AGAIN else "failed", reporter.step, None)
        except QflockError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
    return code
