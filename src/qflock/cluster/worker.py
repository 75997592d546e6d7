"""The one entry point of a worker: joins the others, trains, and turns every way to fail into an exit code."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from types import FrameType

from qflock.cluster.identity import Identity
from qflock.cluster.profiling import serve_profiles
from qflock.cluster.strategy import join, peer_lost, refusal_inside
from qflock.cluster.supervision import Reporter
from qflock.cluster.watch import Watch
from qflock.errors import PreemptedError, QflockError, StoreError, StoreUnreachableError
from qflock.training.progress import Display
from qflock.training.spec import RunSpec
from qflock.training.step_range import StepRange
from qflock.training.store import Store

UNFORESEEN, INTERRUPTED, AGAIN = 1, 130, 143
USUAL_THRESHOLD = 2_000
LAST_WORDS_SECONDS = 3.0


def load() -> None:
    """Imports what a worker needs, which takes seconds; processes forked from this one then have it at once.

    A training is not the time to save garbage collection: from now on there is as much of it as usual.

    Raises:
        ConfigurationError: If TensorFlow or Keras is missing.
    """
    import qflock.training.loop
    import qflock.training.ready  # noqa: F401

    gc.freeze()  # a collection would write to every object, and so copy the memory that the processes share
    gc.set_threshold(USUAL_THRESHOLD)


def run_worker(
    spec: RunSpec,
    store: Store,
    identity: Identity | None,
    trusted: str | None,
    start_timeout: float,
    display: Display,
    profile: StepRange | None = None,
) -> int:
    """Trains as one worker. Where there are several, a failure ends the process without returning.

    Args:
        spec: What to train.
        store: Where.
        identity: Of this worker; None for a training on its own.
        trusted: The `file.py:name` that the user gave for an experiment of their own.
        start_timeout: Seconds to wait for the other workers.
        display: How the chief shows progress.
        profile: Steps that every worker records for the profiler, if any.

    Returns:
        The exit code: 0 done, 1 unforeseen, 2 permanent, 130 stopped by Ctrl-C, 143 start again.
    """
    me = identity or Identity()
    reporter = Reporter(me.index)
    stop: list[int] = []
    try:
        from qflock.training.loop import Worker, train
        from qflock.training.ready import experiment_of

        strategy = join(identity, start_timeout)
        experiment = experiment_of(spec, trusted)
        # Until here a signal ends the process at once. After the experiment, which may have handlers of its own.
        _note_signals(stop)
        watch = Watch(me, lambda lost: _leave(store, me, reporter, AGAIN, f"another worker was lost: {lost}"))
        serve_profiles(store, me)
        worker = Worker(
            me.index, me.count, strategy, lambda: bool(stop), reporter.on_step, watch.end, watch.alive,
            reporter.on_resume,
        )  # fmt: skip
        train(experiment, spec, store, worker, display, profile)
    except PreemptedError as error:  # all leave together
        code = INTERRUPTED if stop[:1] == [signal.SIGINT] else AGAIN
        _last_words(store, me, reporter, code, str(error))
        return code
    except QflockError as error:
        # Of a bucket that does not answer, nobody waits a second time.
        reachable = None if isinstance(error, StoreUnreachableError) else store
        return _fail(reachable, me, reporter, error.exit_code, str(error))
    except Exception as error:
        if me.count > 1 and peer_lost(error):
            return _fail(store, me, reporter, AGAIN, f"another worker was lost ({type(error).__name__})")
        if (refused := refusal_inside(error)) is not None:
            return _fail(store, me, reporter, refused.exit_code, str(refused))
        line = traceback.format_exception_only(error)[-1].strip().splitlines()[-1].strip()
        return _fail(store, me, reporter, UNFORESEEN, line, traceback.format_exc())
    return 0


def _note_signals(noted: list[int]) -> None:
    """Signals only leave a note, which the loop reads between two steps."""

    def note(number: int, frame: FrameType | None) -> None:
        if number in noted:  # asked for the second time: at once
            os._exit(INTERRUPTED if number == signal.SIGINT else AGAIN)
        noted.append(number)

    def forget() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    # Or nobody could end the processes that an experiment forks, such as those of a `multiprocessing.Pool`.
    os.register_at_fork(after_in_child=forget)


def _fail(
    store: Store | None, me: Identity, reporter: Reporter, code: int, message: str, trace: str = ""
) -> int:
    if me.count > 1:
        _leave(store, me, reporter, code, message, trace)
    _last_words(store, me, reporter, code, message, trace)
    return code


def _leave(
    store: Store | None, me: Identity, reporter: Reporter, code: int, message: str, trace: str = ""
) -> None:
    """Ends the process now: TensorFlow's own way out waits for the others, or aborts, when one of them is gone."""
    words = threading.Thread(
        target=_last_words, args=(store, me, reporter, code, message, trace), daemon=True
    )
    words.start()
    words.join(LAST_WORDS_SECONDS)  # a store that is cut off as well must not hold it up
    sys.stdout.flush()
    logging.shutdown()
    os._exit(code)


def _last_words(
    store: Store | None, me: Identity, reporter: Reporter, code: int, message: str, trace: str = ""
) -> None:
    from qflock.training.run import write_status

    reporter.failed(message, trace)
    print(trace + f"error: {message}", file=sys.stderr, flush=True)
    if me.chief and store:
        stopped = code in (AGAIN, INTERRUPTED)
        with suppress(StoreError):  # what has ended the run is told already, and it may be the store
            write_status(store, "preempted" if stopped else "failed", reporter.step, None)
