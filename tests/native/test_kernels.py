"""Builds the kernels' own test for each instruction set of this processor, and runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from qflock.engine.processor import available_instruction_sets

ROOT = Path(__file__).parents[2]
FLAGS = {
    "avx512": "-DQFLOCK_VECTOR_BYTES=64 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mprefer-vector-width=512",
    "avx2": "-DQFLOCK_VECTOR_BYTES=32 -mavx2 -mfma",
    "baseline": "-DQFLOCK_VECTOR_BYTES=16",
}


@pytest.mark.parametrize("instruction_set", available_instruction_sets())
def test_kernels_equal_their_definition(instruction_set, tmp_path):
    program = tmp_path / "kernel_test"
    compiler = os.environ.get("CXX", "g++")
    command = [
        compiler,
        "-std=c++17",
        "-O2",
        "-ffast-math",
        "-fopenmp",
        "-Wno-psabi",
        *FLAGS[instruction_set].split(),
    ]
    source = ["-I", ROOT / "src/qflock/engine/native", ROOT / "tests/native/kernel_test.cc"]
    subprocess.run([*command, *source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
