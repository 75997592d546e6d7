"""Checkpoints: written under a name of their own, then committed by one small object, so that none is ever half there."""

from __future__ import annotations

import hashlib
import json
import logging

from qflock.errors import RunError
from qflock.training.state import TrainingState
from qflock.training.store import Store

FOLDER = "checkpoints"
log = logging.getLogger("qflock")


def save(store: Store, state: TrainingState, keep: int) -> None:
    """Stores a state and drops all but the newest `keep`."""
    name, content = f"step-{state.position.step:012d}-{state.position.epochs:06d}", state.pack()
    store.write(f"{FOLDER}/{name}.npz", content)
    commit = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    store.write(f"{FOLDER}/{name}.json", json.dumps(commit).encode())
    _prune(store, keep)


def newest(store: Store, fingerprint: str | None = None) -> TrainingState | None:
    """The newest whole checkpoint; damaged ones and those of another training are passed over with a warning."""
    for name in reversed(committed(store)):
        try:
            state = _load(store, name)
        except RunError as error:
            log.warning("Skipped checkpoint %s: %s", name, error)
            continue
        if fingerprint is None or state.position.fingerprint == fingerprint:
            return state
        log.warning(
            "Skipped checkpoint %s: it belongs to other data, another model, seed or batch size", name
        )
    return None


def committed(store: Store) -> list[str]:
    """Names of the committed checkpoints, oldest first."""
    return [name.removesuffix(".json") for name in store.list(FOLDER) if name.endswith(".json")]


def _load(store: Store, name: str) -> TrainingState:
    where = f"{store.url}/{FOLDER}/{name}.npz"
    commit = store.read(f"{FOLDER}/{name}.json")
    content = store.read(f"{FOLDER}/{name}.npz")
    try:
        expected = json.loads(commit)["sha256"]
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{where} has an unreadable commit record") from None
    if hashlib.sha256(content).hexdigest() != expected:
        raise RunError(f"{where} is damaged: its content is not what was committed")
    return TrainingState.unpack(content, where)


def _prune(store: Store, keep: int) -> None:
    """The commit record goes first, so that what remains of an interrupted removal is not a checkpoint."""
    names = committed(store)
    for name in names[:-keep]:
        store.delete(f"{FOLDER}/{name}.json")
    kept = set(names[-keep:])
    for file in store.list(FOLDER):
        if file.endswith(".npz") and file.removesuffix(".npz") not in kept:
            store.delete(f"{FOLDER}/{file}")
