"""The experiments that come with qflock, by name."""

from __future__ import annotations

from typing import Any

from qflock.errors import ConfigurationError
from qflock.models.cluster_data import cluster_data
from qflock.models.qcnn import qcnn
from qflock.training.data import Data, examples
from qflock.training.experiment import Experiment, load_experiment, sign_accuracy
from qflock.training.spec import RunSpec


def qcnn_experiment(architecture: str, qubits: int, examples: int) -> Experiment:
    """The quantum convolutional network on excitations of cluster states, with mean squared error and Adam."""
    import keras

    return Experiment(
        model=lambda: qcnn(architecture, qubits),
        data=lambda seed: _cluster_examples(qubits, examples, seed),
        optimizer=lambda learning_rate: keras.optimizers.Adam(learning_rate),
        metrics=(sign_accuracy,),
        name=f"qcnn {architecture} {qubits} qubits",
    )


def _cluster_examples(qubits: int, count: int, seed: int) -> Data:
    from qflock.layers import convert_to_tensor

    data = cluster_data(qubits, count, seed)
    return Data(
        train=examples(convert_to_tensor(data.train_circuits), data.train_labels),
        validation=examples(convert_to_tensor(data.validation_circuits), data.validation_labels),
    )


def experiment_of(spec: RunSpec, trusted: str | None = None) -> Experiment:
    """The experiment behind a spec.

    Args:
        spec: Of the run.
        trusted: The `file.py:name` that the user gave on this command line. A reference that was merely read from a run
            is never executed.

    Raises:
        ConfigurationError: If the run needs a file that the user did not name.
    """
    arguments: dict[str, Any] = spec.arguments
    if spec.what == "qcnn":
        return qcnn_experiment(arguments["architecture"], arguments["qubits"], arguments["examples"])
    if trusted is None:
        raise ConfigurationError(
            f"The run was made from {spec.what}, which is not executed without your word: add --experiment {spec.what}"
        )
    return load_experiment(trusted)
