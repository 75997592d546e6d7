"""What only the model itself can tell: its circuits, and its predictions where none are stored yet."""

from __future__ import annotations

import csv
import io

import cirq
import numpy as np

from qflock.circuits.tensors import deserialize
from qflock.errors import RunError
from qflock.reports.circuit_picture import circuit_picture
from qflock.reports.reading import RunRecord
from qflock.reports.style import Picture
from qflock.training.data import as_tuple, unpack
from qflock.training.run import PREDICTIONS, VALIDATION


def predictions_of(run: RunRecord, trusted: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and labels `(values,)`, as `qflock infer` has stored them; else it is done now, and they are stored.

    Raises:
        RunError: If the run has no weights, or what is stored cannot be read.
        ConfigurationError: If the model is the user's own and `trusted` does not name it.
    """
    if not run.store.exists(PREDICTIONS):
        from qflock.training.inference import infer
        from qflock.training.ready import experiment_of

        infer(experiment_of(run.spec, trusted), run.spec, run.store)
    text = run.store.read(PREDICTIONS).decode(errors="replace")
    try:
        rows = [(float(row["prediction"]), float(row["label"])) for row in csv.DictReader(io.StringIO(text))]
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise RunError(
            f"{run.store.url}/{PREDICTIONS} must hold predictions and labels, but cannot be read ({error!r}); "
            f"write it anew with `qflock infer {run.store.url}`"
        ) from None
    if not rows:
        raise RunError(f"{run.store.url}/{PREDICTIONS} must hold predictions, but is empty")
    outputs, labels = np.array(rows).T
    return outputs, labels


def circuits_of(run: RunRecord, name: str, trusted: str | None) -> list[Picture]:
    """Pictures of the circuit of each quantum layer, and of one data circuit; equal circuits are drawn once.

    Raises:
        ConfigurationError: If the model is the user's own and `trusted` does not name it.
    """
    from qflock.layers import PQC
    from qflock.training.ready import experiment_of

    captions: dict[cirq.AbstractCircuit, list[str]] = {}
    for layer in experiment_of(run.spec, trusted).model().layers:
        if isinstance(layer, PQC):
            captions.setdefault(layer.model_circuit.freeze(), []).append(layer.name)
    pictures = [
        circuit_picture(f"{name}-{number}" if number else name, f"Layer {', '.join(layers)}", circuit)
        for number, (circuit, layers) in enumerate(captions.items())
    ]
    example = _data_circuit(run)
    if example is not None and captions:
        pictures.append(circuit_picture(f"{name}-data", "The first validation example", example))
    return pictures


def _data_circuit(run: RunRecord) -> cirq.AbstractCircuit | None:
    if not run.store.exists(VALIDATION):
        return None
    inputs = unpack(run.store.read(VALIDATION), f"{run.store.url}/{VALIDATION}").inputs
    firsts = [array.ravel()[0] for array in as_tuple(inputs)]
    found = [deserialize(first) for first in firsts if isinstance(first, bytes)]
    return next((item for item in found if isinstance(item, cirq.AbstractCircuit)), None)
