"""What a cluster needs beyond a valid job file, checked before anything is submitted."""

from __future__ import annotations

from collections.abc import Callable

from qflock.deploy.spec import JobSpec
from qflock.engine.memory import readable
from qflock.errors import ConfigurationError, MemoryBudgetError

FRAMEWORK_BYTES = 1 << 30
REMOTE = ("gs://", "s3://")


def worst_case_memory(job: JobSpec) -> int:
    """Bytes of one worker without the cone reduction: full states of the QCNN, and TensorFlow's own need."""
    from qflock.engine.memory import estimate_memory

    return estimate_memory(job.experiment.qubits) + FRAMEWORK_BYTES


def check_for_cluster(job: JobSpec, estimate: Callable[[JobSpec], int] = worst_case_memory) -> None:
    """Raises where the job could not run on a cluster.

    Args:
        job: What is to be submitted.
        estimate: Bytes that one worker needs.

    Raises:
        ConfigurationError: If the store is not one that all pods reach.
        MemoryBudgetError: If a worker's memory is too small for the circuit.
    """
    if not job.store.startswith(REMOTE):
        raise ConfigurationError(
            f"Key `store` must be a URL that every pod reaches (gs://, s3://), but is {job.store!r}: "
            "a local folder ends with its pod"
        )
    if job.experiment.what == "qcnn" and job.experiment.architecture == "full":
        _check_memory(job, estimate(job))


def _check_memory(job: JobSpec, needed: int) -> None:
    if needed > job.resources.memory_bytes:
        raise MemoryBudgetError(
            f"Key `resources.memory` must be at least {readable(needed)} for {job.experiment.qubits} qubits, "
            f"but is {job.resources.memory}; raise it or use fewer qubits"
        )
