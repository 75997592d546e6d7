"""The `tf.distribute` strategy of a worker, and what its errors mean."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from qflock import errors
from qflock.cluster.identity import Identity, split_address
from qflock.cluster.ports import check_port
from qflock.errors import ConfigurationError, PreemptedError, QflockError

_PROBE_SECONDS = 0.2


def quiet_tensorflow() -> None:
    """Silences TensorFlow's start-up messages; must be called before its first import."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


def join(identity: Identity | None, start_timeout: float) -> Any:
    """The strategy that joins all workers, or the default one where there is one worker only.

    Args:
        identity: Of this worker; None for a training on its own.
        start_timeout: Seconds after which peers that do not answer are named.

    Raises:
        PreemptedError: If a peer does not answer in time.
        ConfigurationError: If this worker's port is taken, or QFLOCK_THREADS is not a number.
    """
    import tensorflow as tf

    _limit_threads(tf)
    if identity is None or identity.count == 1:
        return tf.distribute.get_strategy()
    wait_for_peers(identity, start_timeout)
    with _own_sigterm():
        return tf.distribute.MultiWorkerMirroredStrategy()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Holds SIGTERM back while TensorFlow puts its own handler in place, and removes that: a signal that it takes is lost.

    Other threads, of which a fork has none at first, can still take it: the worker then joins, and is ended by whoever waits
    for it to stop. It has nothing to store.
    """
    handler = signal.getsignal(signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def peer_lost(error: BaseException) -> bool:
    """Whether an error says that another worker is gone, so that a new start helps."""
    import tensorflow as tf

    lost = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.DeadlineExceededError,
        tf.errors.CancelledError,
    )
    text = str(error)
    return isinstance(error, lost) or (
        isinstance(error, tf.errors.OpError) and "Collective ops is aborted" in text
    )


def refusal_inside(error: BaseException) -> QflockError | None:
    """The error of qflock's own that a compiled step has raised: TensorFlow hands on its name and text alone."""
    import tensorflow as tf

    if not isinstance(error, tf.errors.OpError):
        return None
    for line in str(error).splitlines():
        name, colon, message = line.rpartition("}} ")[2].strip().partition(": ")
        kind = getattr(errors, name, None)
        if colon and isinstance(kind, type) and issubclass(kind, QflockError):
            return kind(message)
    return None


def _limit_threads(tf: Any) -> None:
    text = os.environ.get("QFLOCK_THREADS")
    if text is None:
        return
    if not text.isdigit() or int(text) < 1:
        raise ConfigurationError(f"QFLOCK_THREADS must be a whole number of at least 1, but is {text!r}")
    tf.config.threading.set_intra_op_parallelism_threads(int(text))


def wait_for_peers(identity: Identity, timeout: float) -> None:
    """Waits until every peer has answered once, while answering on this worker's own port.

    TensorFlow alone waits up to an hour inside of one call that lets no Python code run. A worker that has seen all
    others goes on to TensorFlow, whose server then answers for it on the same port.

    Raises:
        ConfigurationError: If this worker's port is taken.
        PreemptedError: If a peer does not answer in time; names it.
    """
    port = split_address(identity.addresses[identity.index])[1]
    check_port(port)
    missing = [i for i in range(identity.count) if i != identity.index]
    end = time.monotonic() + timeout
    with socket.create_server(("", port)):
        while missing := [i for i in missing if not _answers(identity.addresses[i])]:
            if time.monotonic() > end:
                names = ", ".join(f"worker {i} ({identity.addresses[i]})" for i in missing)
                raise PreemptedError(f"After {timeout:g} s these workers are missing: {names}")
            time.sleep(_PROBE_SECONDS)


def _answers(address: str) -> bool:
    try:
        socket.create_connection(split_address(address), timeout=1.0).close()
    except OSError:
        return False
    return True
