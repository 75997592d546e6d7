"""The processor: its instruction set, the threads that this process may use, its cache and its memory."""

from __future__ import annotations

import functools
import importlib
import math
import os
import platform
from pathlib import Path
from typing import Any

from qflock.errors import EngineError

INSTRUCTION_SETS = {"avx512": "_native_avx512", "avx2": "_native_avx2", "baseline": "_native_baseline"}
"""Best first. On aarch64 the baseline is NEON."""


@functools.cache
def native() -> Any:
    """The native module of the best instruction set, or of the one that QFLOCK_INSTRUCTION_SET names.

    Raises:
        EngineError: If the named set is unknown, was not built, or is missing on this processor.
    """
    return native_for(os.environ.get("QFLOCK_INSTRUCTION_SET") or best_instruction_set())


@functools.cache
def native_for(instruction_set: str) -> Any:
    """The native module of one instruction set.

    Args:
        instruction_set: "avx512", "avx2" or "baseline".

    Raises:
        EngineError: If the name is unknown, was not built, or is missing on this processor.
    """
    if instruction_set not in INSTRUCTION_SETS:
        raise EngineError(
            f"Instruction set must be one of {', '.join(INSTRUCTION_SETS)}, but is {instruction_set!r}; "
            "correct QFLOCK_INSTRUCTION_SET or unset it to use the best there is"
        )
    module = _load(instruction_set)
    if module is None:
        raise EngineError(
            f"Instruction set {instruction_set!r} was not built for {platform.machine()}; "
            f"available here: {', '.join(available_instruction_sets())}"
        )
    if not module.supported():
        raise EngineError(
            f"Instruction set {instruction_set!r} is missing on this processor; "
            f"available here: {', '.join(available_instruction_sets())}"
        )
    return module


def available_instruction_sets() -> tuple[str, ...]:
    """The instruction sets that were built and that this processor has, best first."""
    modules = {name: _load(name) for name in INSTRUCTION_SETS}
    return tuple(name for name, module in modules.items() if module is not None and module.supported())


def best_instruction_set() -> str:
    """The best instruction set of this processor."""
    available = available_instruction_sets()
    if not available:
        raise EngineError(
            "The native engine is missing from this installation; build it with `pip install .`"
        )
    return available[0]


def _load(instruction_set: str) -> Any | None:
    # Read by OpenMP when it is first loaded. Threads that spin for long while they wait for each other lose whole time
    # slices where cores are shared, with other workers for instance: measured 8 ms instead of 0.7 ms for a small batch.
    # Those that sleep at once cost 0.2 ms to wake. So they spin for as long as waking them takes.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        return importlib.import_module(f"qflock.engine.{INSTRUCTION_SETS[instruction_set]}")
    except ModuleNotFoundError:
        return None


def thread_count() -> int:
    """Threads of one evaluation: QFLOCK_THREADS, or the processors and the CPU quota that this process has.

    Raises:
        EngineError: If QFLOCK_THREADS is not a positive whole number.
    """
    wanted = os.environ.get("QFLOCK_THREADS")
    if wanted is not None:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise EngineError(f"QFLOCK_THREADS must be a whole number of at least 1, but is {wanted!r}")
        return int(wanted)
    return _usable_processors()


@functools.cache
def _usable_processors() -> int:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    return max(1, affinity if quota is None else min(affinity, math.ceil(quota)))


def _cpu_quota() -> float | None:
    """Processors that the control group allows, by its version 2 or version 1 files."""
    limit = _cgroup_file("cpu.max")
    if limit is not None:
        quota, _, period = limit.partition(" ")
        return None if quota == "max" else float(quota) / float(period or 100000)
    quota_v1, period_v1 = _cgroup_file("cpu/cpu.cfs_quota_us"), _cgroup_file("cpu/cpu.cfs_period_us")
    if quota_v1 is None or period_v1 is None or float(quota_v1) <= 0:
        return None
    return float(quota_v1) / float(period_v1)


def available_memory() -> int:
    """Bytes that a new allocation may take: what the machine has left, and what the control group allows."""
    left = _meminfo("MemAvailable")
    for limit_file, used_file in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        limit, used = _cgroup_file(limit_file), _cgroup_file(used_file)
        if limit is not None and used is not None and limit != "max":
            left = min(left, max(0, int(limit) - int(used)))
    return left


def _meminfo(key: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 1 << 62


def _cgroup_file(name: str) -> str | None:
    try:
        return (Path("/sys/fs/cgroup") / name).read_text().strip()
    except OSError:
        return None


@functools.cache
def second_level_cache() -> int:
    """Bytes of the second-level cache of one core; a careful guess where the system does not say."""
    try:
        # What the C library tells is wrong on some virtual machines.
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        size = int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        size = 0
    return size if size > 0 else 1 << 19
