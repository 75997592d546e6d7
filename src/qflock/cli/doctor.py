"""`qflock doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable

import typer

PACKAGES = {
    "cirq-core": "required",
    "numpy": "required",
    "tensorflow": "pip install 'qflock[train-cpu]'",
    "keras": "pip install 'qflock[train-cpu]'",
    "tensorboard": "pip install 'qflock[train-cpu]'",
    "xprof": "pip install 'qflock[train-cpu]'",
    "fsspec": "pip install 'qflock[train-cpu]'",
    "gcsfs": "pip install 'qflock[gcs]', for gs://",
    "s3fs": "pip install 'qflock[s3]', for s3://",
    "pyarrow": "pip install pyarrow, for Parquet files",
}
_SAME = {"tensorflow": ("tensorflow", "tensorflow-cpu")}


def doctor() -> None:
    """Show versions, instruction set, cores and memory, and say what is missing.

    Example:

    * `qflock doctor`
    """
    _line("qflock", _version("qflock") or "from source")
    _line("python", platform.python_version())
    for package, remedy in PACKAGES.items():
        _line(package, _version(package) or f"missing: {remedy}")
    _line("profiler", _profiler())
    _line("instruction set", _of_the_engine(_instruction_set))
    _line("cores", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()))
    _line("threads", _of_the_engine(_threads))
    _line("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB")


def _line(name: str, value: str) -> None:
    typer.echo(f"{name:16s} {value}")


def _version(package: str) -> str | None:
    for name in _SAME.get(package, (package,)):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _profiler() -> str:
    """Whether TensorBoard and xprof work together."""
    from qflock.cluster.strategy import quiet_tensorflow
    from qflock.training.versions import tensorboard_problem

    quiet_tensorflow()
    return tensorboard_problem() or "fits TensorBoard"


def _instruction_set() -> str:
    from qflock.engine.processor import best_instruction_set, native

    native()
    return os.environ.get("QFLOCK_INSTRUCTION_SET") or best_instruction_set()


def _threads() -> str:
    from qflock.engine.processor import thread_count

    return str(thread_count())


def _of_the_engine(ask: Callable[[], str]) -> str:
    """What the engine answers, or why it cannot work."""
    from qflock.errors import EngineError

    try:
        return ask()
    except EngineError as error:
        return f"none: {error}"
