"""Kills random workers of a local training at random moments, and says how long each time until it trained again."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

PATIENCE = 240.0


@dataclass(frozen=True)
class Kill:
    """One of them: which worker, and the seconds until a step was done by a worker that was started afterwards."""

    worker: int
    seconds: float


def kill_randomly(
    process: subprocess.Popen[str], steps: Path, kills: int, generator: random.Random, longest_wait: float
) -> list[Kill]:
    """Kills `kills` times, each time up to `longest_wait` seconds after the training was seen to go on.

    Args:
        process: `qflock train` with several workers.
        steps: File to which each worker appends time and process of each step.
        kills: How many.
        generator: Of moments and victims.
        longest_wait: Seconds.
    """
    done = []
    _seconds_to_step(steps, since=0.0, without=set(), process=process)
    for _ in range(kills):
        time.sleep(generator.uniform(0, longest_wait))
        workers = workers_of(process)
        victim = generator.randrange(len(workers))
        killed = time.time()
        workers[victim].kill()
        before = {worker.pid for worker in workers}
        done.append(Kill(victim, _seconds_to_step(steps, killed, before, process)))
    return done


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The workers that a launcher has started, in their order."""
    return sorted(psutil.Process(process.pid).children(), key=lambda child: child.pid)


def _seconds_to_step(steps: Path, since: float, without: set[int], process: subprocess.Popen[str]) -> float:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, f"the training has ended with {process.returncode}"
        for line in steps.read_text().splitlines() if steps.exists() else []:
            when, pid = line.split()
            if int(pid) not in without and float(when) > since:
                return float(when) - since
        time.sleep(0.05)
    raise AssertionError(f"no step within {PATIENCE:g} s")
