"""TensorBoard scalars, written locally and copied to the run's store."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

from qflock.training.store import Store

FOLDER = "tensorboard"
SYNC_SECONDS = 25.0


class Curves:
    """Writes the values of each epoch. A resumed run writes its past again, so that each step appears once."""

    def __init__(self, store: Store, past: list[dict[str, Any]]) -> None:
        self._store = store
        self._folder = Path(tempfile.mkdtemp(prefix="qflock-curves-"))
        self._synced = time.monotonic()
        for name in store.list(FOLDER):
            store.delete(f"{FOLDER}/{name}")
        self._writer = tf.summary.create_file_writer(str(self._folder))
        for record in past:
            values = {k: v for k, v in record.items() if k not in ("kind", "epoch", "step")}
            self.epoch(record["step"], values)

    def epoch(self, step: int, values: dict[str, float]) -> None:
        """Adds the end of an epoch at `step`."""
        with self._writer.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Copies the files to the store."""
        self._writer.flush()
        for file in self._folder.iterdir():
            self._store.write(f"{FOLDER}/{file.name}", file.read_bytes())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Copies the files to the store for the last time and removes the local ones."""
        self.sync()
        self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)
