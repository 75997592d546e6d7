"""A job file on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from qflock.deploy.files import read_job
from qflock.errors import ConfigurationError
from qflock.training.spec import RunSpec


@dataclass(frozen=True)
class LocalRun:
    """What `qflock train --job` starts: the job's training, in its store, with its number of workers."""

    spec: RunSpec
    run: str
    workers: int


def local_run(path: str, what: str = "", run: str = "") -> LocalRun:
    """The local form of a job file; `run` replaces the store.

    Raises:
        ConfigurationError: If the file is wrong, names no store, or stands beside another thing to train.
    """
    if what:
        raise ConfigurationError(f"Option --job must stand alone, but there is also {what!r}; leave one out")
    job = read_job(path)
    if not (run or job.store):
        raise ConfigurationError(f"Job file {path} must name a `store`, but has none; add it, or give --run")
    return LocalRun(job.experiment.run_spec(), run or job.store, job.workers)
