"""Whether the installed TensorBoard and profiler fit each other and qflock."""

from __future__ import annotations

import importlib
import importlib.metadata
import re

from qflock.errors import ConfigurationError

FIX = "pip install --upgrade 'tensorboard>=2.20,<3' 'xprof>=2.20,<3'"
OLDEST, BELOW = (2, 20), (3,)
MODULES = {"tensorboard": "tensorboard.program", "xprof": "xprof.profile_plugin_loader"}
RIVAL = "tensorboard-plugin-profile"


def check_tensorboard() -> None:
    """Checks the packages that `qflock tensorboard` needs.

    Raises:
        ConfigurationError: If one is missing, too old, too new or broken, or the profiler is there twice; names the fix.
    """
    problem = tensorboard_problem()
    if problem:
        raise ConfigurationError(problem)


def tensorboard_problem() -> str | None:
    """What keeps TensorBoard or its profiler from working, with the fix; None if nothing does."""
    for package in MODULES:
        version = _version(package)
        if version is None:
            return f"Package {package} is missing; install it: {FIX}"
        if not OLDEST <= _numbers(version) < BELOW:
            return f"Package {package} must be at least 2.20 and below 3, but is {version}; install one that fits: {FIX}"
    if _version(RIVAL) is not None:
        return f"Package {RIVAL} must not be installed beside xprof, which replaces it: pip uninstall {RIVAL}"
    for package, module in MODULES.items():
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a package that does not fit its own dependencies raises
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            return f"Package {package} {_version(package)} cannot be imported ({reason}); install one that fits: {FIX}"
    return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    Example:
        >>> _numbers("2.21.0rc1")
        (2, 21, 0)
    """
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("rc")[0])[:3])
