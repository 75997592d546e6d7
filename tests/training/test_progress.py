"""What the chief shows: the bar on a real pseudo-terminal, lines and objects elsewhere."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time
from contextlib import redirect_stdout

import pytest

from qflock.engine.watch import watch
from qflock.training import progress as shown
from qflock.training.progress import Display, Progress

SCRIPT = """
import time
from qflock.engine.watch import watch
from qflock.training import progress
progress.SLOW_SECONDS = 0.2
with progress.Progress(progress.Display.full, 3, 2, lambda: 1) as bar:
    bar.phase("preparing the data")
    time.sleep(0.4)
    bar.start(30, 10)
    with watch.span("backward", qubits=24):
        watch.share_of(24)(0.43)
        time.sleep(0.8)
    bar.step(11, 2, 0.5)
    bar.epoch(2, 20, {"loss": 0.25, "val_loss": 0.125}, 1234.4)
    bar.checkpoint(20)
    time.sleep(0.4)
"""


def drive(display: Display) -> list[str]:
    """The lines of one epoch."""
    output = io.StringIO()
    with redirect_stdout(output), Progress(display, 3, 2, lambda: 2) as progress:
        progress.phase("preparing the data")
        progress.start(30, 10)
        progress.step(11, 2, 0.5)
        progress.epoch(2, 20, {"loss": 0.25, "val_loss": 0.125}, 1234.4)
        progress.checkpoint(20)
    return output.getvalue().splitlines()


def test_one_line_for_each_epoch() -> None:
    (line,) = drive(Display.full)
    assert line == "epoch 2/3  step 20  loss 0.2500  val_loss 0.1250  1234 circuits/s  left 0 s"


def test_one_object_for_each_event() -> None:
    epoch, checkpoint = map(json.loads, drive(Display.json))
    assert (epoch["event"], epoch["loss"], epoch["circuits_per_second"]) == ("epoch", 0.25, 1234.4)
    assert (checkpoint["event"], checkpoint["checkpoint"], checkpoint["alive"]) == ("checkpoint", 20, 2)


def test_quiet_is_quiet() -> None:
    assert drive(Display.quiet) == []


@pytest.mark.parametrize(
    ("display", "expected"), [(Display.full, "backward of 20 qubits 50%"), (Display.json, '"busy"')]
)
def test_long_silence_is_broken(display: Display, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(shown, "SLOW_SECONDS", 0.0)
    output = io.StringIO()
    with redirect_stdout(output), Progress(display, 3, 2, lambda: 2), watch.span("backward", qubits=20):
        report = watch.share_of(20)
        assert report is not None
        report(0.5)
        end = time.monotonic() + 20
        while expected not in output.getvalue():
            assert time.monotonic() < end
            time.sleep(0.05)


def test_the_bar_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=theirs, stderr=subprocess.PIPE, env=os.environ | {"COLUMNS": "150", "TERM": "xterm"}
    )  # fmt: skip
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 4096):
            drawn += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = drawn.decode()
    last = "epoch 2/3  loss 0.2500  val_loss 0.1250  1234 circuits/s  workers 1/2  checkpoint at step 20"
    for part in ("preparing the data", "backward of 24 qubits 43%", "20/30", "left", last):
        assert part in text


def test_the_engine_tells_what_it_does() -> None:
    import cirq
    import sympy

    from qflock.engine.simulator import Simulator

    seen: list[tuple[str, dict[str, int]]] = []

    class Noted:
        def __init__(self, name: str, **details: int) -> None:
            seen.append((name, details))

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

    before, tracer = watch.work(), watch.tracer
    watch.tracer = Noted  # type: ignore[assignment]
    try:
        qubit = cirq.LineQubit(0)
        simulator = Simulator(cirq.Circuit(cirq.rx(sympy.Symbol("a"))(qubit)), cirq.Z(qubit), threads=1)
        data = [cirq.Circuit(cirq.X(qubit)), cirq.Circuit(cirq.Y(qubit))]
        simulator.expectations([0.5], data)
        simulator.vjp([0.5], [[1.0], [1.0]], data)
    finally:
        watch.tracer = tracer
    done = watch.work().since(before)
    assert (done.circuits, done.compiled) == (2, 5) and done.seconds > 0
    # Once more for the model, which is split anew as soon as it is known what its data are like.
    assert [name for name, _ in seen].count("qflock.compile") == 5 + 1
    (forward,) = [details for name, details in seen if name == "qflock.forward"]
    assert forward == {"qubits": 4, "batch": 2, "threads": 1}
    assert "qflock.backward" in dict(seen)
