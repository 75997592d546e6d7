"""Where examples come from: arrays, files, datasets; each example once per epoch; weights as in Keras."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cirq
import keras
import numpy as np
import pyarrow as pa
import pytest
import sympy
import tensorflow as tf
from pyarrow import parquet

from qflock.circuits.tensors import serialize
from qflock.circuits.text import circuit_to_text
from qflock.errors import ConfigurationError, QflockError
from qflock.layers import PQC, convert_to_tensor
from qflock.training import checkpoints
from qflock.training.batches import Batches
from qflock.training.data import Data, Examples, examples, pack, unpack
from qflock.training.datasets import dataset_examples
from qflock.training.experiment import Experiment
from qflock.training.files import file_examples
from qflock.training.loop import Worker, train
from qflock.training.metrics_log import read_metrics
from qflock.training.parquet_columns import ParquetColumns
from qflock.training.progress import Display
from qflock.training.spec import RunSpec
from qflock.training.store import Store
from tests.training import visits
from tests.training.commands import qflock

ROWS = 23
QUBIT = cirq.LineQubit(0)
FEATURES = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
LABELS = np.where(np.arange(ROWS) % 3 == 0, 1.0, -1.0).astype(np.float32)
WEIGHTS = np.linspace(0, 2, ROWS).astype(np.float32)
CIRCUITS = [cirq.Circuit(cirq.ry(angle)(QUBIT)) for angle in np.linspace(0, 3, ROWS)]
TEXTS = [
    cirq.to_json(circuit) if place % 2 else circuit_to_text(circuit) for place, circuit in enumerate(CIRCUITS)
]
MIXED = (np.array([serialize(circuit) for circuit in CIRCUITS], dtype=object), FEATURES)


def _table(**changes: Any) -> pa.Table:
    columns = {
        "circuits": TEXTS,
        "features": FEATURES.tolist(),
        "labels": LABELS,
        "weights": WEIGHTS,
    } | changes
    return pa.table({name: values for name, values in columns.items() if values is not None})


def _npz(path: Path, save: Callable[..., None] = np.savez) -> Examples:
    save(path / "data.npz", circuits=TEXTS, features=FEATURES, labels=LABELS, weights=WEIGHTS)
    return file_examples(path / "data.npz")


def _parquet(path: Path) -> Examples:
    parquet.write_table(_table(), path / "data.parquet", row_group_size=4)
    return file_examples(path / "data.parquet")


def _columns_side_by_side(path: Path) -> Examples:
    apart = {f"x{k}": FEATURES[:, k] for k in range(3)}
    parquet.write_table(_table(features=None, **apart), path / "data.parquet", row_group_size=5)
    return file_examples(path / "data.parquet", features=["x0", "x1", "x2"])


def _dataset(path: Path) -> Examples:
    rows = tf.data.Dataset.from_tensor_slices(((convert_to_tensor(CIRCUITS), FEATURES), LABELS, WEIGHTS))
    return dataset_examples(rows.batch(4), batched=True)


SOURCES: dict[str, Callable[[Path], Examples]] = {
    "npz": _npz,
    "compressed npz": lambda path: _npz(path, np.savez_compressed),
    "parquet": _parquet,
    "columns": _columns_side_by_side,
    "dataset": _dataset,
    "arrays": lambda path: examples(MIXED, LABELS, sample_weights=WEIGHTS),
    "stored in a run": lambda path: unpack(pack(examples(MIXED, LABELS, sample_weights=WEIGHTS)), "here"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    source = SOURCES[name](tmp_path)
    picked = np.array([20, 3, 3, 0, 22, 7])
    (circuits, features), labels, weights = source.take(picked)
    assert len(source) == ROWS
    assert circuits.tolist() == MIXED[0][picked].tolist()
    assert np.array_equal(features, FEATURES[picked])
    assert np.array_equal(labels, LABELS[picked, None])
    assert np.array_equal(weights, WEIGHTS[picked])


@pytest.mark.parametrize("make", [_npz, _parquet, _dataset])
def test_a_change_in_any_row_changes_the_digest(
    tmp_path: Path, make: Callable[[Path], Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = make(tmp_path).digest()
    assert make(tmp_path).digest() == before
    changed = FEATURES.copy()
    changed[11, 1] += 10
    monkeypatch.setattr("tests.training.test_data.FEATURES", changed)
    assert make(tmp_path).digest() != before


def test_files_are_read_on_demand(tmp_path: Path) -> None:
    np.savez(tmp_path / "big.npz", features=np.zeros((10, 1 << 20)), labels=np.zeros(10))
    source: Any = file_examples(tmp_path / "big.npz")
    source.take(np.array([4]))
    assert isinstance(source.columns._array("features"), np.memmap)
    parquet.write_table(_table(), tmp_path / "groups.parquet", row_group_size=4)
    columns = ParquetColumns(tmp_path / "groups.parquet", budget=1)
    for row in (1, 2, 21, 5):
        assert np.array_equal(columns.read("features", np.array([row])), FEATURES[[row]])
        assert list(columns._kept) == [("features", row // 4)]


def _trained(experiment: Experiment, spec: RunSpec, name: str) -> Store:
    store = Store(f"memory://data/{name}")
    train(experiment, spec, store, Worker(0, 1, tf.distribute.get_strategy()), Display.quiet)
    return store


def test_circuits_and_features_are_two_inputs_of_a_model(tmp_path: Path) -> None:
    def model() -> keras.Model:
        circuits, features = keras.Input((), dtype="string"), keras.Input((3,))
        turned = PQC(cirq.Circuit(cirq.rx(sympy.Symbol("a"))(QUBIT)), cirq.Z(QUBIT))(circuits)
        return keras.Model(
            [circuits, features], keras.layers.Dense(1)(keras.ops.concatenate([turned, features], 1))
        )

    losses = []
    for name in ("npz", "parquet", "arrays"):
        source = SOURCES[name](tmp_path)
        experiment = Experiment(
            model, lambda seed, source=source: Data(source, source), keras.optimizers.Adam
        )
        store = _trained(experiment, RunSpec("test", epochs=2, batch_size=7), f"mixed-{name}")
        losses.append([record["loss"] for record in read_metrics(store) if "loss" in record])
    assert len(losses[0]) == 2 * 4 + 2
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize("columns", [1, 2])
def test_weights_mean_what_they_mean_in_keras(columns: int) -> None:
    classes = (LABELS > 0).astype(np.int64)
    labels = LABELS if columns == 1 else np.eye(2)[classes]
    by_class = {-1: 0.5, 1: 3.0} if columns == 1 else {0: 0.5, 1: 3.0}
    spec = RunSpec("test", epochs=3, batch_size=5, learning_rate=0.05)

    def model() -> keras.Model:
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(columns, kernel_initializer="ones")])

    def optimizer(rate: float) -> keras.Optimizer:
        return keras.optimizers.SGD(rate, momentum=0.9)

    data = Data(
        examples(FEATURES, labels, sample_weights=WEIGHTS, class_weights=by_class),
        examples(FEATURES[:9], labels[:9], sample_weights=WEIGHTS[:9]),
    )
    store = _trained(Experiment(model, lambda seed: data, optimizer), spec, f"keras-{columns}")
    ours = [record for record in read_metrics(store) if record["kind"] == "epoch"]

    network = model()
    network.compile(optimizer(spec.learning_rate), "mean_squared_error")
    both = WEIGHTS * np.where(LABELS > 0, 3.0, 0.5)
    batches = Batches(ROWS, spec.batch_size, spec.seed)
    for epoch, record in enumerate(ours):
        steps = range(epoch * batches.steps_per_epoch, (epoch + 1) * batches.steps_per_epoch)
        order = np.concatenate([batches.indices(step) for step in steps])
        history = network.fit(
            FEATURES[order], labels[order], sample_weight=both[order], batch_size=spec.batch_size, shuffle=False, verbose=0,
            validation_data=(FEATURES[:9], labels[:9], WEIGHTS[:9]),
        )  # fmt: skip
        assert record["loss"] == pytest.approx(history.history["loss"][0], rel=1e-5)
        assert record["val_loss"] == pytest.approx(history.history["val_loss"][0], rel=1e-5)
    by_keras = keras.Sequential([keras.Input((3,)), keras.layers.Dense(columns, kernel_initializer="ones")])
    by_keras.compile(optimizer(0.0), "mean_squared_error")
    alone = examples(FEATURES, labels, class_weights=by_class).weights
    fitted = by_keras.fit(FEATURES, labels, class_weight=by_class, batch_size=ROWS, verbose=0).history[
        "loss"
    ][0]
    errors = np.mean((by_keras.predict(FEATURES, verbose=0) - labels.reshape(ROWS, -1)) ** 2, axis=1)
    assert fitted == pytest.approx(float(np.mean(errors * alone)), rel=1e-5)


@pytest.mark.parametrize(("workers", "ending"), [(1, "npz"), (2, "parquet"), (3, "npz")])
def test_each_example_counts_once_per_epoch(
    tmp_path: Path, workers: int, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, size, epochs, rate = visits.EXAMPLES, 5, 3, 0.5
    labels, weights = np.where(np.arange(rows) < 4, -1.0, 1.0), np.linspace(0.5, 2, rows)
    file = tmp_path / f"data.{ending}"
    if ending == "npz":
        np.savez(file, features=np.eye(rows), labels=labels, weights=weights)
    else:
        columns = {"features": np.eye(rows).tolist(), "labels": labels, "weights": weights}
        parquet.write_table(pa.table(columns), file, row_group_size=3)
    expected = np.zeros(rows)
    batches = Batches(rows, size, seed=0)
    for step in range(epochs * batches.steps_per_epoch):
        used = batches.indices(step)
        expected[used] -= rate * weights[used] * np.where(labels[used] < 0, 2.0, 1.0) / len(used)
    if workers == 1:
        monkeypatch.setenv("VISITS_FILE", str(file))
        spec = RunSpec("test", epochs=epochs, batch_size=size, learning_rate=rate)
        store = _trained(visits.experiment, spec, "visits")
    else:
        store = Store(str(tmp_path / "run"))
        done = qflock(
            "train", f"{visits.__file__}:experiment", "--workers", workers, "--epochs", epochs, "--batch-size", size,
            "--learning-rate", rate, "--run", store.url, VISITS_FILE=str(file),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    state = checkpoints.newest(store)
    assert state is not None
    np.testing.assert_allclose(state.arrays[0][:, 0], expected, atol=1e-6)


def _pickled(path: Path) -> Any:
    ragged = np.array([np.zeros(2), np.zeros(3)], dtype=object)
    np.savez(path / "data.npz", features=ragged, labels=[1, 2])
    return file_examples(path / "data.npz").take(np.array([0]))


def _written(path: Path, **changes: Any) -> Any:
    parquet.write_table(_table(**changes), path / "data.parquet", row_group_size=4)
    return file_examples(path / "data.parquet").take(np.arange(ROWS))


def _changed(values: Any, row: int, value: Any) -> Any:
    changed = list(values)
    changed[row] = value
    return changed


def _other_version(text: str) -> str:
    import base64

    return base64.b64encode(base64.b64decode(text).replace(b"qflock1:", b"qflock7:")).decode()


HOSTILE = json.dumps({"cirq_type": "sympy.Not", "args": ["__import__('sys').exit('executed')"]})


def _not_a_file(path: Path) -> Any:
    (path / "data.npz").write_text("not a zip file")
    return file_examples(path / "data.npz")


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing file": (lambda p: file_examples(p / "none.npz"), r"none\.npz does not exist"),
    "unknown ending": (lambda p: file_examples(p / "data.csv"), r"must end in \.npz or \.parquet"),
    "not a file of its kind": (_not_a_file, "must be a file from numpy.savez"),
    "pickled": (_pickled, "Array 'features' of .* pickled Python objects.* never loaded"),
    "missing column": (lambda p: _written(p, labels=None), "must have a column 'labels', but has circuits, features, weights"),
    "no inputs": (lambda p: _written(p, circuits=None, features=None), "must have a column 'circuits' or 'features'"),
    "ragged": (lambda p: _written(p, features=_changed(FEATURES.tolist(), 6, [1.0])), r"row 6 \(from 0\) has 1 values"),
    "NaN": (lambda p: _written(p, features=_changed(FEATURES.tolist(), 6, [1.0, np.nan, 0.0])), "row 6 .* NaN"),
    "empty place": (lambda p: _written(p, labels=_changed(LABELS.tolist(), 9, None)), r"'labels' .* row 9 \(from 0\) has none"),
    "text for numbers": (lambda p: _written(p, labels=TEXTS), "Column 'labels' of .* must hold numbers"),
    "negative weight": (lambda p: _written(p, weights=-WEIGHTS), "at least 0, but has -"),
    "other version": (
        lambda p: _written(p, circuits=_changed(TEXTS, 2, _other_version(TEXTS[2]))),
        r"row 2 \(from 0\): .* must be of version 1, but is of version 7",
    ),
    "JSON that would run": (lambda p: _written(p, circuits=_changed(TEXTS, 5, HOSTILE)), r"row 5 .* holds a sympy\.Not"),
    "not a circuit": (lambda p: _written(p, circuits=_changed(TEXTS, 5, "???")), "row 5 .* cirq.to_json"),
    "other JSON": (lambda p: _written(p, circuits=_changed(TEXTS, 5, json.dumps({"a": 1}))), "row 5 .* must hold a circuit"),
    "weights too short": (lambda p: examples(FEATURES, LABELS, sample_weights=[1.0]), r"shape \(23,\), but has shape \(1,\)"),
    "weight not a number": (lambda p: examples(FEATURES, LABELS, class_weights={1: np.inf}), "`class_weights` must hold finite"),
    "ragged arrays": (lambda p: examples([[1.0], [1.0, 2.0]], [1, 2]), "`inputs` must be a rectangular array"),
    "NaN in arrays": (lambda p: examples([[1.0], [np.nan]], [1, 2]), r"`inputs` must hold finite numbers, but row 1"),
    "lengths": (lambda p: examples(FEATURES, LABELS[:-1]), "the same length of at least 1, but have 23 and 22"),
    "endless": (lambda p: dataset_examples(tf.data.Dataset.range(3).repeat()), "must end, but repeats for ever"),
    "no labels": (lambda p: dataset_examples(tf.data.Dataset.range(3)), r"must have elements \(inputs, labels\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(tmp_path: Path, name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(ConfigurationError, match=message) as caught:
        make(tmp_path)
    assert isinstance(caught.value, QflockError) and "\n" not in str(caught.value)
