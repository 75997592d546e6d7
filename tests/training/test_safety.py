"""Runs that were tampered with: nothing that is read from a run is executed, and nothing leaves the run."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qflock.circuits.tensors import _framed
from qflock.errors import ConfigurationError, RunError
from qflock.training import checkpoints
from qflock.training.data import unpack
from qflock.training.metrics_log import read_metrics
from qflock.training.ready import experiment_of
from qflock.training.run import load_spec, read_status
from qflock.training.state import Position, TrainingState
from qflock.training.store import Store
from tests.training.commands import qflock

PRINT = "ab" * 32
NAME = "step-000000000002-000000"


class Evil:
    def __init__(self, proof: Path) -> None:
        self._proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._proof),)


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _header(**changes: Any) -> np.ndarray:
    fields = {"step": 2, "epochs": 0, "fingerprint": PRINT} | changes
    return np.frombuffer(json.dumps(fields).encode(), dtype=np.uint8)


def _commit(store: Store, content: bytes) -> None:
    record = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    store.write(f"{checkpoints.CHECKPOINTS}/{NAME}.npz", content)
    store.write(f"{checkpoints.CHECKPOINTS}/{NAME}.json", json.dumps(record).encode())


def _pickled(proof: Path) -> np.ndarray:
    return np.array([Evil(proof)], dtype=object)


def test_the_pickle_would_act(tmp_path: Path) -> None:
    np.load(io.BytesIO(_npz(a=_pickled(tmp_path / "proof"))), allow_pickle=True)["a"]
    assert (tmp_path / "proof").exists()


@pytest.mark.parametrize(
    "arrays",
    [
        lambda proof: {"header": _header(), "array00000": _pickled(proof)},
        lambda proof: {"header": _pickled(proof)},
        lambda proof: {"header": _header(step=-1)},
        lambda proof: {"header": _header(step="2")},
        lambda proof: {"header": _header(step=True)},
        lambda proof: {"header": _header(step=2**70)},
        lambda proof: {"header": _header(fingerprint="../../x")},
        lambda proof: {"header": _header(more="x")},
        lambda proof: {"header": np.frombuffer(b"[" * 100_000, dtype=np.uint8)},
        lambda proof: {"array00000": np.zeros(3)},
    ],
)
def test_a_tampered_checkpoint_is_passed_over_by_name(
    tmp_path: Path, arrays: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store, proof = Store(str(tmp_path / "run")), tmp_path / "proof"
    checkpoints.save(store, TrainingState(Position(1, 0, PRINT), (np.ones(3),)), keep=3)
    _commit(store, _npz(callbacks=np.frombuffer(b"{}", np.uint8), **arrays(proof)))
    found = checkpoints.newest(store, PRINT)
    assert found is not None and found.position.step == 1
    assert NAME in caplog.text and not proof.exists()


def test_a_checkpoint_that_only_looks_like_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    checkpoints.save(store, TrainingState(Position(1, 0, PRINT), (np.ones(3),)), keep=1)
    for name in ("notes.txt", "a.json", "step-000000000002-000000.json", "step-x.json", "zzz.json"):
        store.write(f"{checkpoints.CHECKPOINTS}/{name}", b"{}")
    assert checkpoints.newest(store, PRINT) is not None
    checkpoints.save(store, TrainingState(Position(3, 0, PRINT), (np.ones(3),)), keep=1)
    names = store.list(checkpoints.CHECKPOINTS)
    assert names == [
        "a.json",
        "notes.txt",
        "step-000000000003-000000.json",
        "step-000000000003-000000.npz",
        "step-x.json",
        "zzz.json",
    ]


def test_later_checkpoints_that_were_passed_over_take_no_place(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    checkpoints.save(store, TrainingState(Position(9, 0, "cd" * 32), (np.ones(3),)), keep=1)
    for step in (1, 2):
        checkpoints.save(store, TrainingState(Position(step, 0, PRINT), (np.ones(3),)), keep=1)
        found = checkpoints.newest(store, PRINT)
        assert found is not None and found.position.step == step


def test_a_run_of_another_training_is_refused_and_kept(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    checkpoints.save(store, TrainingState(Position(9, 0, "cd" * 32), (np.ones(3),)), keep=1)
    with pytest.raises(RunError, match="they belong to another training"):
        checkpoints.to_resume(store, PRINT)
    assert checkpoints.to_resume(store, "cd" * 32) is not None


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04 no zip",
        _npz(numbers0=np.zeros(2), labels=np.zeros(3), weights=np.ones(2), several=np.array(False)),
        _npz(circuits0=np.array(["no base64 %"]), labels=[1.0], weights=[1.0], several=np.array(False)),
        _npz(numbers0=np.zeros(2), labels=np.zeros(2), weights=[np.nan, 1], several=np.array(False)),
    ],
)
def test_damaged_examples_are_refused(content: bytes) -> None:
    with pytest.raises(RunError, match="here must hold stored examples, but cannot be read"):
        unpack(content, "here")


def test_pickled_examples_are_refused(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    content = _npz(numbers0=_pickled(proof), labels=[1.0], weights=[1.0], several=np.array(False))
    with pytest.raises(RunError, match="cannot be read"):
        unpack(content, "here")
    assert not proof.exists()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "null",
        '{"kind": []}',
        '{"kind": "step"}',
        '{"kind": "x", "step": 1, "epoch": 1}',
        '{"kind": "step", "step": 1, "epoch": 1}',
        '{"kind": "step", "step": 1.5, "epoch": 1, "loss": 1}',
        '{"kind": "step", "step": true, "epoch": 1, "loss": 1}',
        '{"kind": "restart", "step": 1, "epoch": 1, "restarts": "2"}',
    ],
)
def test_damaged_metrics_are_refused(text: str) -> None:
    store = Store("memory://safety/metrics")
    store.write("metrics.jsonl", text.encode())
    with pytest.raises(RunError, match="must hold one record of a step or an epoch on each line"):
        read_metrics(store)


def test_a_damaged_run_hides_no_other_one(tmp_path: Path) -> None:
    for name, status in (
        ("a", '{"state": "\\u001b[2J"}'),
        ("b", '{"state": "finished", "step": 3}'),
        ("c", "[]"),
    ):
        store = Store(str(tmp_path / name))
        store.write("run.json", b"{}")
        store.write("status.json", status.encode())
    (tmp_path / "README").write_text("a file among the runs")
    with pytest.raises(RunError, match=r"must be the status of a run"):
        read_status(Store(str(tmp_path / "a")))
    listed = [line.split()[:2] for line in qflock("runs", tmp_path).stdout.splitlines()]
    assert listed == [["run", "state"], ["a", "damaged"], ["b", "finished"], ["c", "damaged"]]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a/..", "..", "..\\x", "a\0b"])
def test_no_name_leaves_the_run(tmp_path: Path, name: str) -> None:
    store = Store(str(tmp_path / "run"))
    for call in (store.read, store.exists, store.delete, store.list, lambda name: store.write(name, b"")):
        with pytest.raises(RunError, match="must stay inside of the run"):
            call(name)
    assert not list(tmp_path.iterdir())


def test_no_url_leaves_its_bucket() -> None:
    with pytest.raises(ConfigurationError, match=r"must be named without '\.\.'"):
        Store("memory://bucket/../other")


def _spec(store: Store, **changes: Any) -> None:
    spec = {"format": 1, "epochs": 1, "batch_size": 4, "learning_rate": 0.1, "seed": 0}
    spec |= {"checkpoint_seconds": 60.0, "keep": 3, **changes}
    store.write("run.json", json.dumps(spec).encode())


def test_an_experiment_that_a_run_names_is_not_executed(tmp_path: Path) -> None:
    proof, evil, store = tmp_path / "proof", tmp_path / "evil.py", Store(str(tmp_path / "run"))
    evil.write_text(f"__import__('os').mkdir({str(proof)!r})")
    _spec(store, what=f"{evil}:x", arguments={})
    with pytest.raises(ConfigurationError, match="is not executed without your word"):
        experiment_of(load_spec(store))
    assert not proof.exists()


def test_infer_executes_nothing_that_a_circuit_holds(tmp_path: Path) -> None:
    proof, store = tmp_path / "proof", Store(str(tmp_path / "run"))
    _spec(store, what="qcnn", arguments={"architecture": "hybrid", "qubits": 4, "examples": 20})
    code = f"__import__('os').mkdir({str(proof)!r})"
    operation = json.dumps({"cirq_type": "sympy.Not", "args": [code]})
    circuit = _framed(
        b"c", {"qubits": [0], "templates": [[0, 0, {"operation": operation}]], "moments": [[0]]}, []
    )
    inputs = np.array([base64.b64encode(circuit)])
    store.write(
        "validation.npz", _npz(circuits0=inputs, labels=[1.0], weights=[1.0], several=np.array(False))
    )
    done = qflock("infer", store.url)
    assert done.returncode == 2 and "holds a sympy.Not" in done.stderr and "Traceback" not in done.stderr
    assert not proof.exists()
