"""What all tests share: quiet TensorFlow, threads that do not fight over cores, golden files."""

from __future__ import annotations

import os

import pytest

# Tools of the system that some tests need are outside of a user's path on some machines.
os.environ["PATH"] = os.environ.get("PATH", "") + os.pathsep + os.pathsep.join(("/usr/sbin", "/sbin"))

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Several test processes share the cores: a thread that waits must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that `make golden` uses."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files with what there is now"
    )
