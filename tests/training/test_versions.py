from __future__ import annotations

import sys
from pathlib import Path

import pytest

from qflock.errors import ConfigurationError
from qflock.training.versions import check_tensorboard, tensorboard_problem


def pretend(folder: Path, package: str, version: str) -> None:
    """Makes a package look installed in that version to whoever has `folder` first on the path."""
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")


def test_what_is_installed_fits() -> None:
    assert tensorboard_problem() is None


@pytest.mark.parametrize(
    ("package", "version", "fix"),
    [
        ("xprof", "2.19.0", "pip install --upgrade"),
        ("tensorboard", "3.0.0", "pip install --upgrade"),
        ("tensorboard-plugin-profile", "2.20.1", "pip uninstall tensorboard-plugin-profile"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, version: str, fix: str
) -> None:
    pretend(tmp_path, package, version)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"{package}.*{fix}"):
        check_tensorboard()


def test_a_package_that_cannot_be_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xprof.profile_plugin_loader", None)
    with pytest.raises(ConfigurationError, match=r"xprof .* cannot be imported"):
        check_tensorboard()
