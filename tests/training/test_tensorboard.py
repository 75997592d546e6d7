"""What training writes for TensorBoard, read back with TensorBoard's own reader."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import cirq
import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

import qflock
from qflock.errors import PreemptedError
from qflock.training.board import drawn, example_circuit
from qflock.training.experiment import Experiment
from qflock.training.loop import Worker, train
from qflock.training.pictures import circuit_picture, circuit_text
from qflock.training.progress import Display
from qflock.training.ready import qcnn_experiment
from qflock.training.run import claim
from qflock.training.spec import RunSpec
from qflock.training.store import Store

EPOCHS, STEPS = 3, 4
SPEC = RunSpec("qcnn", {"architecture": "hybrid", "qubits": 4, "examples": 24}, EPOCHS, 5)


class Crash(RuntimeError):
    pass


class CrashAt(keras.callbacks.Callback):
    """Fails after so many steps, at a place where nothing was stored."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        self.left -= 1
        if not self.left:
            raise Crash


def run(store: Store, callbacks: Any = tuple, **more: Any) -> None:
    made = qcnn_experiment("hybrid", 4, 24)
    experiment = Experiment(made.model, made.data, made.optimizer, metrics=made.metrics, callbacks=callbacks)
    worker = Worker(0, 1, tf.distribute.get_strategy(), **more)
    train(experiment, SPEC, store, worker, Display.quiet)


def events(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"tensors": 0})
    found.Reload()
    return found


def values(found: EventAccumulator, tag: str) -> dict[int, float]:
    """Value by step; a step that is there twice fails."""
    listed = [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in found.Tensors(tag)]
    assert len(dict(listed)) == len(listed), tag
    return dict(listed)


def histogram(found: EventAccumulator, tag: str) -> dict[int, np.ndarray]:
    return {e.step: tensor_util.make_ndarray(e.tensor_proto) for e in found.Tensors(tag)}


def check_against_metrics(folder: Path) -> EventAccumulator:
    found = events(folder)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = {r["step"]: np.float32(r["loss"]) for r in records if r["kind"] == "step"}
    assert list(losses) == list(range(1, EPOCHS * STEPS + 1))
    assert values(found, "step_loss") == losses
    epochs = {r["step"]: r for r in records if r["kind"] == "epoch"}
    assert list(epochs) == [STEPS, 2 * STEPS, 3 * STEPS]
    for tag in ("loss", "val_loss", "sign_accuracy", "val_sign_accuracy", "learning_rate", "gradient_norm", "seconds"):  # fmt: skip
        assert values(found, tag) == {step: np.float32(r[tag]) for step, r in epochs.items()}
    for r in (r for r in records if r["kind"] == "pace"):
        for name in ("circuits_per_second", "step_seconds/total", "step_seconds/quantum"):
            assert values(found, f"{name}/worker{r['worker']}")[r["step"]] == np.float32(r[name])
    for tag in ("readouts/filter0", "weights/hidden/kernel", "gradients/filter0/parameters"):
        assert list(histogram(found, tag)) == list(epochs)
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board") / "run"
    store = Store(str(folder))
    claim(store, SPEC, join=False)
    run(store)
    return folder


def test_numbers_are_those_of_the_log(undisturbed: Path) -> None:
    found = check_against_metrics(undisturbed)
    assert "restarts" not in found.Tags()["tensors"]
    assert all(rate > 0 for rate in values(found, "examples_per_second/all").values())


def test_distributions_count_every_value(undisturbed: Path) -> None:
    found = events(undisturbed)
    counts = {
        "readouts/filter0": 7 * 2,
        "weights/filter0/parameters": 21,
        "gradients/hidden/kernel": 2 * 8,
    }
    for tag, count in counts.items():
        for table in histogram(found, tag).values():
            assert table[:, 2].sum() == count
    low, high = histogram(found, "readouts/filter0")[STEPS][[0, -1], [0, 1]]
    assert (low, high) == (-1, 1)


def test_graph_pictures_and_text(undisturbed: Path) -> None:
    found = events(undisturbed)
    names = [node.name for node in found.Graph().node]
    assert any("filter0" in name for name in names) and any("hidden" in name for name in names)
    for tag in ("circuit/filter0", "circuit/example"):
        (event,) = found.Tensors(tag)
        width, height, png = tensor_util.make_ndarray(event.tensor_proto)
        image = np.asarray(Image.open(io.BytesIO(png)))
        assert image.shape == (int(height), int(width)) and image.min() < 100 < image.max()
    (event,) = found.Tensors("hyperparameters")
    text = tensor_util.make_ndarray(event.tensor_proto)[0].decode()
    assert "| learning_rate | `0.02` |" in text and "| workers | `1` |" in text


def test_after_a_crash_each_step_is_there_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    store = Store(str(folder))
    claim(store, SPEC, join=False)
    # Stores a checkpoint at step 4, then loses steps 5 and 6, and step 7 to a request to stop at once.
    with pytest.raises(Crash):
        run(store, callbacks=lambda: [CrashAt(6)])
    asked = iter([False, False, True])
    with pytest.raises(PreemptedError):
        run(store, stopping=lambda: next(asked))
    run(store)
    found = check_against_metrics(folder)
    assert values(found, "restarts") == {4: 1.0, 7: 2.0}
    assert len(found.Tensors("circuit/filter0")) == 1


def test_a_bucket_holds_the_same_files(tmp_path: Path) -> None:
    store = Store("memory://tensorboard-test/run")
    claim(store, SPEC, join=False)
    run(store)
    for name in ("metrics.jsonl", *(f"tensorboard/{n}" for n in store.list("tensorboard"))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(store.read(name))
    check_against_metrics(tmp_path)


@pytest.mark.parametrize("validate", [True, False])
def test_model_fit_gets_the_same_from_the_callback(tmp_path: Path, validate: bool) -> None:
    made = qcnn_experiment("multi-filter", 4, 10)
    data, model = made.data(0), made.model()
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    rows, labels = tf.constant(data.train.take(np.arange(7))[0]), data.train.take(np.arange(7))[1]
    held, held_labels, _ = data.validation.take(np.arange(3))
    more = (tf.constant(held), held_labels) if validate else None
    model.fit(
        rows, labels, epochs=1, batch_size=4, verbose=0
    )  # its compiled step knows nothing of the callback
    before = {v.path: v.numpy() for v in model.trainable_variables}
    board = qflock.TensorBoard(tmp_path / "tensorboard", {"note": "seven"})
    history = model.fit(
        rows, labels, epochs=2, batch_size=7, verbose=0, validation_data=more, callbacks=[board]
    )
    found = events(tmp_path)
    for tag, expected in history.history.items():
        assert values(found, tag) == {step + 1: np.float32(v) for step, v in enumerate(expected)}
    assert list(values(found, "circuits_per_second/worker0")) == [1, 2]
    assert histogram(found, "readouts/filter1")[2][:, 2].sum() == (3 if validate else 7) * 2
    # The second step's gradient, as histogram and as norm, from the weights before and after it.
    after = {v.path: v.numpy() for v in model.trainable_variables}
    steps = values(found, "gradient_norm")
    moved = np.sqrt(sum(np.sum((after[p] - before[p]) ** 2) for p in before)) / 0.1
    assert 0 < moved <= (steps[1] + steps[2]) * (1 + 1e-5)
    assert histogram(found, "gradients/hidden/kernel")[1][:, 2].sum() == 6 * 8
    assert any("filter2" in node.name for node in found.Graph().node)
    assert len(found.Tensors("circuit/filter0")) == len(found.Tensors("circuit/example")) == 1
    (text,) = found.Tensors("hyperparameters")
    assert b"| note | `seven` |" in tensor_util.make_ndarray(text.tensor_proto)[0]
    assert "apply" not in vars(model.optimizer)


class Undrawable(cirq.XPowGate):
    def _circuit_diagram_info_(self, args: cirq.CircuitDiagramInfoArgs) -> cirq.CircuitDiagramInfo:
        raise ArithmeticError("no picture")


def test_what_cannot_be_drawn_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    circuit = cirq.Circuit(Undrawable()(cirq.LineQubit(0)))
    assert list(drawn("strange", circuit)) == [] and "The circuit of strange is not drawn" in caplog.text
    assert example_circuit(np.array([b"not a circuit"])) is None
    assert example_circuit(np.array([0.5])) is None


def test_large_circuits_are_cut_and_say_so() -> None:
    qubits = cirq.LineQubit.range(300)
    text = circuit_text(cirq.Circuit(cirq.H.on_each(*qubits)))
    assert len(text.splitlines()) == 2 * 300 - 1
    _, _, height = circuit_picture(cirq.Circuit(cirq.H.on_each(*qubits)))
    assert height < 402 * 20
