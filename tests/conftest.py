"""What all tests share: quiet TensorFlow, threads that do not fight over cores, golden files."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Several test processes share the cores: a thread that waits must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that `make golden` uses."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files with what there is now"
    )
