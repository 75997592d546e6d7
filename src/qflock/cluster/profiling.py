"""Profiles of all workers at once: each tells the run where it answers, and one call captures them."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qflock.cluster.identity import Identity, split_address
from qflock.cluster.ports import free_ports
from qflock.cluster.profiler_server import profiler_port, start_profiler_server
from qflock.errors import ConfigurationError, RunError, StoreError
from qflock.training.run import load_spec, read_status
from qflock.training.store import Store

ADDRESSES = "profiler"
SESSIONS = "tensorboard/plugins/profile"
_ATTEMPTS = 2
log = logging.getLogger("qflock")


def serve_profiles(store: Store, me: Identity) -> None:
    """Starts the profiler of this worker and writes its address into the run.

    A worker that cannot is still a worker: it says so and trains.

    Raises:
        ConfigurationError: If QFLOCK_PROFILER_PORT is no port, or another process listens there.
    """
    asked = profiler_port(os.environ)
    port = asked or free_ports(1)[0]
    host = split_address(me.addresses[me.index])[0] if me.count > 1 else "localhost"
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        start_profiler_server(port)
    except ConfigurationError as error:
        if asked:
            raise
        log.warning("Worker %d cannot be profiled: %s", me.index, error)
        return
    told = {"address": address, "workers": me.count, "time": time.time()}
    try:
        store.write(f"{ADDRESSES}/worker-{me.index}.json", json.dumps(told).encode())
    except StoreError as error:  # workers other than the chief may do without the store
        log.warning("`qflock profile` cannot find worker %d: %s", me.index, error)


@dataclass(frozen=True)
class Captured:
    """What a capture gave.

    Args:
        session: Its name in TensorBoard.
        sizes: Bytes by worker.
        silent: Addresses by worker of those that gave nothing.
    """

    session: str
    sizes: Mapping[int, int]
    silent: Mapping[int, str]


def capture(store: Store, seconds: float) -> Captured:
    """Captures all workers of a running training at once and stores what they give in the run.

    Args:
        store: Of the run.
        seconds: How long, above 0.

    Raises:
        RunError: If there is no such run, it does not run, or no worker gives anything.
    """
    addresses = addresses_of(store)
    contents: dict[int, bytes] = {}
    silent, problem = addresses, ""
    for _ in range(_ATTEMPTS):  # a worker may just be busy with a profile of its own
        found, problem = _captured(silent, seconds)
        contents |= found
        silent = {worker: a for worker, a in addresses.items() if not contents.get(worker)}
        if not silent:
            break
    if len(silent) == len(addresses):
        names = ", ".join(f"worker {w} ({a})" for w, a in silent.items())
        raise RunError(
            f"Nothing was captured, since nobody answered: {names}; check that {store.url} still runs and that this "
            f"machine reaches the workers' profiler ports{f' ({problem})' if problem else ''}"
        )
    session = time.strftime("captured-%Y%m%d-%H%M%S")
    for worker, content in contents.items():
        store.write(f"{SESSIONS}/{session}/worker-{worker}.xplane.pb", content)
    return Captured(session, {worker: len(content) for worker, content in contents.items()}, silent)


def _captured(addresses: Mapping[int, str], seconds: float) -> tuple[dict[int, bytes], str]:
    """What each worker gives, and what TensorFlow says about it."""
    with tempfile.TemporaryDirectory(prefix="qflock-profile-") as folder:
        problem = _trace(list(addresses.values()), folder, seconds)
        # TensorFlow leaves out a worker that does not answer without a word: only files count.
        files = {path.name: path for path in Path(folder).rglob("*.xplane.pb")}
        found = {w: files.get(f"{a.replace(':', '_')}.xplane.pb") for w, a in addresses.items()}
        return {worker: path.read_bytes() for worker, path in found.items() if path is not None}, problem


def addresses_of(store: Store) -> dict[int, str]:
    """Where the workers of a running training answer.

    Raises:
        RunError: If there is no such run, it has ended, or it has not told yet.
    """
    load_spec(store)
    state = read_status(store).state
    if state != "running":
        raise RunError(f"{store.url} must be running to be profiled, but is {state}")
    told = {}
    for name in store.list(ADDRESSES):
        told[int(name.removeprefix("worker-").removesuffix(".json"))] = json.loads(
            store.read(f"{ADDRESSES}/{name}")
        )
    if not told:
        raise RunError(f"{store.url} names no profiler address yet; wait until its workers have started")
    # Addresses of an earlier start with more workers may be left over.
    workers = max(told.values(), key=lambda each: each["time"])["workers"]
    return {worker: str(told[worker]["address"]) for worker in sorted(told) if worker < workers}


def _trace(addresses: list[str], folder: str, seconds: float) -> str:
    """Fills the folder; returns what TensorFlow complained about."""
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    service = ",".join(f"grpc://{address}" for address in addresses)
    try:
        tf.profiler.experimental.client.trace(
            service, folder, max(1, round(seconds * 1000)), num_tracing_attempts=1, options=options
        )
    except (tf.errors.OpError, RuntimeError) as error:
        return " ".join(str(error).split())[:200]
    return ""
