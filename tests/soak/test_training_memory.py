"""Memory of each worker of a long training stays flat."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster.kills import workers_of
from tests.training.commands import records, start

MINUTES = float(os.environ.get("QFLOCK_SOAK_MINUTES", "30"))
SAMPLE_SECONDS = 5.0


@pytest.mark.soak
@pytest.mark.timeout(MINUTES * 60 + 600)
@pytest.mark.parametrize("count", [1, 2])
def test_memory_of_each_worker_is_flat(tmp_path: Path, count: int) -> None:
    """The first sixth warms up: caches fill, functions are compiled. From then on the memory in use may grow by 2 %."""
    run = tmp_path / "run"
    process = start(
        "train", "qcnn", "--qubits", 4, "--examples", 160, "--epochs", 10_000_000, "--checkpoint-seconds", 5,
        "--workers", count, "--quiet", "--run", run,
    )  # fmt: skip
    try:
        while not list((run / "checkpoints").glob("*.json")):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.5)
        workers, begin = workers_of(process), time.monotonic()
        assert len(workers) == count
        samples: list[list[float]] = [[] for _ in workers]
        while time.monotonic() - begin < MINUTES * 60:
            time.sleep(SAMPLE_SECONDS)
            for worker, sizes in zip(workers, samples, strict=True):
                sizes.append(worker.memory_full_info().uss / 2**20)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    steps = len(records(run, "step"))
    growth = []
    for worker, sizes in enumerate(samples):
        warm = sizes[len(sizes) // 6 :]
        third = len(warm) // 3
        first, last = max(warm[:third]), max(warm[-third:])
        growth.append(last / first - 1)
        shown = ", ".join(
            f"{size:.0f}" for size in itertools.islice(sizes, 0, None, max(1, len(sizes) // 12))
        )
        print(
            f"worker {worker}: {first:.1f}, later {last:.1f} MiB after {steps} steps ({growth[-1]:+.2%}); over time {shown}"
        )
    assert max(growth) <= 0.02
