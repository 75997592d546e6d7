"""Checkpoints: written under a name of their own, then committed by one small object, so that none is ever half there."""

from __future__ import annotations

import hashlib
import json
import logging
import re

from qflock.errors import RunError, StoreError
from qflock.training.state import TrainingState
from qflock.training.store import UNFINISHED, Store

FOLDER = "checkpoints"
_COMMIT, _CONTENT = ".json", ".npz"
_PATTERN = re.compile(r"(step-\d{12}-\d{6})(\.npz|\.json)(\.\d+\.part)?$", re.ASCII)
_ANOTHER = "another training (other data, model, optimiser, loss, seed or batch size)"
log = logging.getLogger("qflock")


def save(store: Store, state: TrainingState, keep: int) -> None:
    """Stores a state and drops all older ones but the newest `keep`, this one included."""
    name, content = f"step-{state.position.step:012d}-{state.position.epochs:06d}", state.pack()
    store.write(f"{FOLDER}/{name}{_CONTENT}", content)
    commit = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    store.write(f"{FOLDER}/{name}{_COMMIT}", json.dumps(commit).encode())
    _prune(store, name, keep)


def newest(store: Store, fingerprint: str | None = None) -> TrainingState | None:
    """The newest whole checkpoint; damaged ones and those of another training are passed over with a warning.

    Args:
        store: Of the run.
        fingerprint: Of the training that is to go on, or None to accept every one.

    Raises:
        StoreError: If the store refuses, which says nothing about the checkpoints.
    """
    for name in reversed(committed(store)):
        try:
            state = _load(store, name)
        except StoreError:
            raise
        except RunError as error:
            log.warning("Skipped checkpoint %s: %s", name, error)
            continue
        if fingerprint is None or state.position.fingerprint == fingerprint:
            return state
        log.warning("Skipped checkpoint %s: it belongs to %s", name, _ANOTHER)
    return None


def to_resume(store: Store, fingerprint: str) -> TrainingState | None:
    """The checkpoint that a training goes on from, or None where it has not stored any.

    Raises:
        RunError: If all whole checkpoints belong to another training: to begin anew would mix the two.
        StoreError: If the store refuses.
    """
    found = newest(store, fingerprint)
    if found is None and newest(store) is not None:
        raise RunError(
            f"{store.url} must hold checkpoints of this training, but they belong to {_ANOTHER}; "
            "resume with what the run was made from, or choose another --run"
        )
    return found


def committed(store: Store) -> list[str]:
    """Names of the committed checkpoints, oldest first."""
    return [_name(file) for file in store.list(FOLDER) if _name(file) and file.endswith(_COMMIT)]


def _load(store: Store, name: str) -> TrainingState:
    where = f"{store.url}/{FOLDER}/{name}{_CONTENT}"
    commit = store.read(f"{FOLDER}/{name}{_COMMIT}")
    content = store.read(f"{FOLDER}/{name}{_CONTENT}")
    try:
        expected = json.loads(commit)["sha256"]
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{where} has an unreadable commit record") from None
    if hashlib.sha256(content).hexdigest() != expected:
        raise RunError(f"{where} is damaged: its content is not what was committed")
    return TrainingState.unpack(content, where)


def _prune(store: Store, newest: str, keep: int) -> None:
    """Removes what is older than the kept ones, and what killed writers have left.

    The commit record goes first, so that what remains of an interrupted removal is not a checkpoint. Names that sort after
    the newest one were passed over when the run was taken up again; they neither count as kept nor are they removed.
    """
    files = [file for file in store.list(FOLDER) if _name(file) and _name(file) <= newest]
    older = [_name(file) for file in files if file.endswith(_COMMIT) and _name(file) < newest]
    kept = {newest, *older[len(older) - keep + 1 :]}
    gone = [file for file in files if _name(file) not in kept or file.endswith(UNFINISHED)]
    for file in sorted(gone, key=lambda file: not file.endswith(_COMMIT)):
        store.delete(f"{FOLDER}/{file}")


def _name(file: str) -> str:
    """The checkpoint that a file belongs to; empty for a file of somebody else's."""
    found = _PATTERN.match(file)
    return found[1] if found else ""
