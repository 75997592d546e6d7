"""The files of a run, by name, and what its state says."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass

from qflock.errors import RunError
from qflock.training.spec import RunSpec
from qflock.training.store import Store

SPEC = "run.json"
CHECKPOINTS = "checkpoints"
STATUS = "status.json"
VALIDATION = "validation.npz"
PREDICTIONS = "predictions.csv"
STATES = ("running", "finished", "preempted", "failed")


@dataclass(frozen=True)
class Status:
    """Where a run stands.

    Args:
        state: One of `STATES`.
        step: Steps done.
        loss: Of the last epoch, or None before the first one ended.
        time: When this was written, in seconds since 1970.
    """

    state: str
    step: int = 0
    loss: float | None = None
    time: float = 0.0

    def __post_init__(self) -> None:
        numbers = (self.step, self.time, 0 if self.loss is None else self.loss)
        if self.state not in STATES or not all(isinstance(number, int | float) for number in numbers):
            raise ValueError(f"no status: {self}")


def claim(store: Store, spec: RunSpec, join: bool) -> None:
    """Makes the run, or joins the one of the same spec. A run that failed before its first checkpoint may be made anew.

    Args:
        store: Of the run.
        spec: What is asked for.
        join: Whether an equal run may exist already, as when a cluster starts a worker again.

    Raises:
        RunError: If the run directory is already used.
    """
    if may_begin(store, spec, join):
        store.write(SPEC, spec.to_json().encode())


def may_begin(store: Store, spec: RunSpec, join: bool) -> bool:
    """Whether `claim` would make the run; False where it would join one. Arguments and errors are those of `claim`."""
    begun = store.exists(SPEC)
    if not begun and store.list(""):
        raise RunError(
            f"Argument `run` must be a new or empty directory, but {store.url} already holds other files"
        )
    if not begun or _failed_at_once(store):
        return True
    if not join:
        raise RunError(
            f"Argument `run` must be new, but {store.url} is already used; continue it with `qflock resume {store.url}`"
        )
    if load_spec(store) != spec:
        raise RunError(f"{store.url} holds a run with other arguments; choose another --run")
    return False


def _failed_at_once(store: Store) -> bool:
    return read_status(store).state == "failed" and not store.list(CHECKPOINTS)


def load_spec(store: Store) -> RunSpec:
    """The spec of a run; `RunError` if there is no run."""
    if not store.exists(SPEC):
        raise RunError(f"{store.url} must be a run of `qflock train`, but holds no {SPEC}")
    return RunSpec.from_json(store.read(SPEC), f"{store.url}/{SPEC}")


def write_status(store: Store, state: str, step: int, loss: float | None) -> None:
    """Says where the run stands."""
    status = Status(state, step, loss, time.time())
    store.write(STATUS, json.dumps(asdict(status)).encode())


def read_status(store: Store) -> Status:
    """Where the run stands; a run that has not begun is "running" at step 0."""
    if not store.exists(STATUS):
        return Status("running")
    try:
        return Status(**json.loads(store.read(STATUS)))
    except (ValueError, TypeError):
        raise RunError(
            f"{store.url}/{STATUS} must be the status of a run, but cannot be read; delete it: training writes a new one"
        ) from None
