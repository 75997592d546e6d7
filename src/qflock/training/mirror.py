"""A local copy of what a run in a bucket has for TensorBoard, which can follow folders only."""

from __future__ import annotations

from pathlib import Path

from qflock.training.curves import FOLDER
from qflock.training.events import PREFIX
from qflock.training.step_profile import FOLDER as PROFILES
from qflock.training.store import Store


class Mirror:
    """Copies event files and profiles.

    Args:
        store: Of the run.
        folder: Where to copy to; takes the place of the run's `tensorboard` folder.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._newest: list[str] = []

    def update(self) -> None:
        """Fetches what is new and drops event files that are gone."""
        names = [name for name in self._store.list(FOLDER) if name.startswith(PREFIX)]
        # Only the newest file grows; the one that was the newest before may have grown since, and then come to its end.
        newest = sorted(names)[-1:]
        growing, self._newest = {*newest, *self._newest}, newest
        for name in names:
            if name in growing or not (self._folder / name).exists():
                self._append(name)
        for file in self._folder.glob(f"{PREFIX}*"):
            if file.name not in names:
                file.unlink()
        for session in self._store.list(PROFILES):
            for name in self._store.list(f"{PROFILES}/{session}"):
                self._fetch(f"{PROFILES}/{session}/{name}")

    def _append(self, name: str) -> None:
        """TensorBoard reads on in an open file, so that it must grow in place."""
        content = self._store.read(f"{FOLDER}/{name}")
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / name
        with file.open("ab") as target:
            target.write(content[target.tell() :])

    def _fetch(self, name: str) -> None:
        file = self._folder / name.removeprefix(f"{FOLDER}/")
        if not file.exists() and name.endswith(".xplane.pb"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self._store.read(name))
