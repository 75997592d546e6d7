from __future__ import annotations

import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for temporary files."""
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder
