"""An experiment that has signal handlers and processes of its own."""

from __future__ import annotations

import multiprocessing
import signal
import time

import keras

from tests.training.linear import Slow, make

for _number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(_number, lambda number, frame: print("taken by the experiment"))


class Forks(keras.callbacks.Callback):
    """Ends a process of its own as `multiprocessing` does."""

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
        time.sleep(0.1)
        process.terminate()
        process.join(20)
        print(f"a process of the experiment ended with {process.exitcode}")


experiment = make(callbacks=lambda: [Forks(), Slow()])
