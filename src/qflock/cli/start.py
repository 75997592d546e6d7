"""From a checked request to workers: in this process, as several local ones, or as a member of a cluster."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from qflock.cluster.identity import Identity, identity_from
from qflock.errors import ConfigurationError
from qflock.training.environment import record_environment
from qflock.training.lock import only_writer
from qflock.training.progress import Display
from qflock.training.run import claim, may_begin
from qflock.training.spec import RunSpec
from qflock.training.step_range import StepRange
from qflock.training.store import Store


@dataclass(frozen=True)
class Request:
    """How to run a spec.

    Args:
        spec: What to train.
        run: Folder or URL.
        fresh: Whether the run must be new.
        trusted: The `file.py:name` of this command line, or None.
        workers: Local processes.
        start_timeout: Seconds to wait for peers.
        restarts: Restarts in a row without progress.
        port: First port, or None.
        verbose: Whether TensorFlow's messages are shown.
        display: How progress is shown.
        profile: Steps that every worker records for the profiler, or None.
    """

    spec: RunSpec
    run: str
    fresh: bool
    trusted: str | None
    workers: int
    start_timeout: float
    restarts: int
    port: int | None
    verbose: bool
    display: Display
    profile: StepRange | None = None


def start(request: Request) -> int:
    """Runs to the end and returns the exit code."""
    from qflock.cluster.launcher import Launch, launch
    from qflock.cluster.strategy import quiet_tensorflow
    from qflock.cluster.worker import load

    logging.basicConfig(format="%(levelname)s: %(message)s".lower())
    if not request.verbose:
        quiet_tensorflow()
    if not request.start_timeout > 0:
        raise ConfigurationError(f"Argument `start_timeout` must be above 0, but is {request.start_timeout}")
    identity = identity_from(os.environ)
    store = Store(request.run)
    _check_memory(store, identity.count if identity else request.workers)
    local = Launch(
        lambda: _work(request, Store(request.run), identity_from(os.environ)), request.workers, request.restarts,
        request.port, raw=request.display == Display.json,
    )  # fmt: skip
    claims = request.fresh and (identity is None or identity.chief)
    if claims:
        may_begin(store, request.spec, join=identity is not None)
    load()
    if claims:
        claim(store, request.spec, join=identity is not None)
        record_environment(store, identity.count if identity else request.workers)
    # A single worker that is not to be started again needs nobody to watch it; memory would not outlive it.
    watched = request.workers > 1 or (request.restarts > 0 and store.scheme != "memory")
    if identity is not None:
        return _work(request, store, identity)
    with only_writer(store):
        return launch(local) if watched else _work(request, store, None)


def _work(request: Request, store: Store, identity: Identity | None) -> int:
    from qflock.cluster.worker import run_worker

    return run_worker(
        request.spec,
        store,
        identity,
        request.trusted,
        request.start_timeout,
        request.display,
        request.profile,
    )


def _check_memory(store: Store, workers: int) -> None:
    if store.scheme == "memory" and workers > 1:
        raise ConfigurationError(
            "A run on memory:// must have 1 worker, since processes do not share it; use a folder"
        )
