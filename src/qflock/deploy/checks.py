"""What a cluster needs beyond a valid job file, checked before anything is submitted."""

from __future__ import annotations

from qflock.deploy.spec import JobSpec
from qflock.engine.memory import estimate_memory, readable
from qflock.errors import ConfigurationError, MemoryBudgetError

# Python, TensorFlow, Keras and the bucket's client. Measured with TensorFlow 2.21, Keras 3.15 and Python 3.11 on x86-64:
# a worker's resident size peaked at 733 MiB alone, at 783 MiB as one of two, and at 813 and 972 MiB (two machines) as the
# chief of three that wrote to gs://, with and without circuits of 4 qubits. How much of the libraries' files stays
# resident is the kernel's choice, so a sixth is added.
FRAMEWORK_BYTES = 1152 << 20
REMOTE = ("gs://", "s3://")


def least_memory(job: JobSpec) -> int:
    """Bytes that one worker needs at least.

    The full QCNN reads out every qubit, so it needs whole states; the other ones need 12 qubits at any width, which is
    nothing beside the framework. What an experiment of the user's needs is not known.
    """
    full = job.experiment.what == "qcnn" and job.experiment.architecture == "full"
    return FRAMEWORK_BYTES + (estimate_memory(job.experiment.qubits) if full else 0)


def check_for_cluster(job: JobSpec) -> None:
    """Raises where the job could not run on a cluster.

    Args:
        job: What is to be submitted.

    Raises:
        ConfigurationError: If the store is not one that all pods reach.
        MemoryBudgetError: If a worker's memory is too small.
    """
    if not job.store.startswith(REMOTE):
        raise ConfigurationError(
            f"Key `store` must be a URL that every pod reaches (gs://, s3://), but is {job.store!r}: "
            "a local folder ends with its pod"
        )
    needed = least_memory(job)
    if needed > job.resources.memory_bytes:
        raise MemoryBudgetError(
            f"Key `resources.memory` must be at least {readable(needed)} for {job.experiment.qubits} qubits, "
            f"but is {job.resources.memory}; raise it or use fewer qubits"
        )
