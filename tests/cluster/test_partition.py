"""Three workers on three machines, one of which is cut off: the others leave soon, and the job completes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from qflock.cluster.identity import Identity
from tests.cluster.controller import Controller, Member
from tests.cluster.namespaces import network, reason_for_none
from tests.training.commands import LINEAR, command, environment, losses, records

WORKERS, EPOCHS = 3, 40


def _members(commands: list[list[str]], addresses: tuple[str, ...], **more: str) -> list[Member]:
    threads = {"QFLOCK_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return [
        Member(each, environment(TF_CONFIG=Identity(addresses, index).tf_config(), **threads, **more))
        for index, each in enumerate(commands)
    ]


def _wait_for_checkpoint(run: Path, controller: Controller) -> None:
    end = time.monotonic() + 200
    while not list((run / "checkpoints").glob("*.json")):
        assert time.monotonic() < end, [member.output for member in controller.members]
        time.sleep(0.1)


def _train_with_a_cut(run: Path, victim: int, seconds: float) -> None:
    train = command(
        "train", f"{LINEAR}:experiment", "--epochs", EPOCHS, "--checkpoint-seconds", 1, "--run", run
    )
    with network(WORKERS) as net:
        commands = [net.command(index, train) for index in range(WORKERS)]
        addresses = tuple(f"{address}:2222" for address in net.addresses)
        controller = Controller(_members(commands, addresses, SLOW_STEP="0.15"), starts=8)
        try:
            _wait_for_checkpoint(run, controller)
            cut = time.monotonic()
            net.cut(victim)
            time.sleep(seconds)
            net.mend(victim)
            done = controller.wait(240)
            outputs = "\n".join(member.output for member in controller.members)
            assert done, outputs
        finally:
            controller.end()
    for index, member in enumerate(controller.members):
        first, code = member.ends[0]
        print(
            f"worker {index}: left {first - cut:.1f} s after the cut; all its ends: {[code for _, code in member.ends]}"
        )
        assert code == 143, outputs
        assert first - cut <= 20, outputs
        assert {code for _, code in member.ends[:-1]} == {143}, outputs


@pytest.mark.skipif(reason_for_none() is not None, reason=f"no network namespaces here: {reason_for_none()}")
@pytest.mark.parametrize(
    ("victim", "seconds"),
    [(1, 13), *(pytest.param(each, 30, marks=pytest.mark.soak) for each in range(WORKERS))],
)
def test_a_machine_is_cut_off(tmp_path: Path, victim: int, seconds: float) -> None:
    run = tmp_path / "run"
    _train_with_a_cut(run, victim, seconds)
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    assert [r["step"] for r in records(run, "step")] == list(range(1, 4 * EPOCHS + 1))
    assert len(losses(run)) == 4 * EPOCHS and np.isfinite(losses(run)).all()
