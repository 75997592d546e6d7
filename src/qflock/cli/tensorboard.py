"""`qflock tensorboard`."""

from __future__ import annotations

import logging
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qflock.cli import options
from qflock.errors import QflockError

if TYPE_CHECKING:
    from qflock.training.mirror import Mirror

SECONDS_BETWEEN = 10.0
log = logging.getLogger("qflock")


def tensorboard(
    run: options.RunArgument,
    port: Annotated[int, typer.Option(help="Where to serve it on this machine.")] = 6006,
) -> None:
    """Serve TensorBoard for a run, local or in a bucket, while it trains or later; Ctrl-C ends it.

    Examples:

    * `qflock tensorboard runs/first`

    * `qflock tensorboard gs://bucket/run --port 7000`
    """
    from qflock.cluster.ports import check_port
    from qflock.cluster.strategy import quiet_tensorflow
    from qflock.training.run import load_spec
    from qflock.training.store import Store

    store = Store(run)
    load_spec(store)
    check_port(port)
    quiet_tensorflow()
    from qflock.training.versions import check_tensorboard

    check_tensorboard()
    with ExitStack() as stack:
        local = store.local_path()
        if local is not None:
            folder = local / "tensorboard"
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qflock-tensorboard-")))
            from qflock.training.mirror import Mirror

            mirror = Mirror(store, folder)
            mirror.update()
            threading.Thread(target=_follow, args=(mirror,), daemon=True).start()
        raise typer.Exit(_serve(folder, port))


def _follow(mirror: Mirror) -> None:
    pause = threading.Event()
    while not pause.wait(SECONDS_BETWEEN):
        try:
            mirror.update()
        except QflockError as error:
            log.warning("%s; trying again in %g s", error, SECONDS_BETWEEN)


def _serve(folder: Path, port: int) -> int:
    from tensorboard import default, program

    server = program.TensorBoard(plugins=default.get_plugins())
    server.configure(argv=["tensorboard", f"--logdir={folder}", f"--port={port}", "--reload_interval=5"])
    return int(server.main() or 0)
