"""The planner's equations, against figures reckoned by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from qflock.planning.reckoning import Conditions, memory_needed, with_preemptions
from tests.planning.figures import ALONE, RECKONING, TRAINING

EIGHT = Conditions(threads=8)


def test_one_worker_here_takes_what_was_measured() -> None:
    forecast = RECKONING.here(TRAINING, 1)
    assert (forecast.kernel, forecast.framework, forecast.communication) == pytest.approx((0.006, 0.004, 0.0))
    # Four steps, 48 examples forward at 2 ms for 32, the rest.
    assert forecast.epoch == pytest.approx(4 * 0.010 + 0.003 + 0.005)
    assert forecast.start == pytest.approx(5 + 160 * 0.001)
    assert forecast.total == pytest.approx(forecast.start + 10 * forecast.epoch)
    assert forecast.circuits_per_hour == pytest.approx(32 * 3600 / 0.010)


def test_two_workers_here_give_back_their_measured_step() -> None:
    assert RECKONING.here(TRAINING, 2).step == pytest.approx(0.013)
    ring = 2 * 2 * (0.0005 + 1000 / (2 * 1e6))
    assert RECKONING.ring(2, 2) == pytest.approx(ring)
    assert RECKONING.coordination == pytest.approx(0.013 - 0.004 - 0.004 - ring)


def test_ring_grows_with_its_hops_and_sends_all_bytes_twice() -> None:
    bytes_per_second, parameters = 1e6, 1000
    for workers in (4, 1000):
        hops = 2 * (workers - 1)
        seconds = hops * (0.0005 + 1e-4) + hops / workers * parameters / bytes_per_second
        assert RECKONING.ring(workers, 1, 1e-4) == pytest.approx(seconds)


def test_threads_follow_the_measured_serial_share() -> None:
    # 6 ms on two threads, 10 ms on one: 0.6 = s + (1 - s) / 2.
    assert RECKONING.serial_share == pytest.approx(0.2)
    kernel = RECKONING.elsewhere(TRAINING, 1, EIGHT).kernel
    assert kernel == pytest.approx(0.010 * (0.2 + 0.8 / 8))
    assert RECKONING.amdahl(8, 2, (8,)) == pytest.approx(0.2 + 0.8 / 2)
    assert RECKONING.amdahl(8, 2, (24,)) == pytest.approx(0.2 + 0.8 / 8)


def test_more_work_makes_the_kernel_longer_and_nothing_else() -> None:
    heavy = RECKONING.elsewhere(replace(TRAINING, work_ratio=100.0), 4, EIGHT)
    light = RECKONING.elsewhere(TRAINING, 4, EIGHT)
    assert heavy.kernel == pytest.approx(100 * light.kernel)
    assert (heavy.framework, heavy.communication) == (light.framework, light.communication)


def test_preemptions_follow_daly() -> None:
    conditions = Conditions(8, preemptions_per_hour=0.05, checkpoint_seconds=60.0)
    total, expected = with_preemptions(36000.0, 100.0, 32, conditions)
    mean = 3600 / (32 * 0.05)
    daly = mean * math.exp(100 / mean) * (math.exp(60 / mean) - 1) * 36000 / 60
    assert total == pytest.approx(100 + daly)
    assert expected == pytest.approx(total / mean)
    assert with_preemptions(36000.0, 1e6, 1000, conditions) == (math.inf, math.inf)


def test_memory_counts_the_states_that_are_there_at_once() -> None:
    process, gib = ALONE.memory, 1 << 30
    assert memory_needed(process, (8, 8), 4, 32, 1000) == process + 1000 + 2 * 16 * (1 << 8) * 16
    assert memory_needed(process, (16,), 4, 32, 0) == process + 4 * (1 << 16) * 16
    assert memory_needed(process, (29,), 8, 32, 0) == process + 8 * gib
    assert memory_needed(process, (), 8, 32, 0) == process
    # Where all threads together would take more than half of the memory, fewer samples are evaluated at once.
    assert memory_needed(process, (19,), 512, 512, 0, 4 * gib) == process + 2 * gib
