"""Job files: TOML text to a checked `JobSpec`, with errors that say which keys there are."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from qflock.deploy.spec import JobSpec
from qflock.errors import ConfigurationError


def read_job(path: str | Path) -> JobSpec:
    """The job in a TOML file.

    Raises:
        ConfigurationError: If the file cannot be read, is no TOML, or describes no job.
    """
    try:
        return parse_job(Path(path).read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise ConfigurationError(f"Job file {path} must exist, but there is none of that name") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Job file {path} must be UTF-8 text, but cannot be read: {error}") from None


def parse_job(text: str, where: str = "job file") -> JobSpec:
    """The job in TOML text; `where` names the source in errors.

    Example:
        >>> parse_job('name = "first"').workers
        2
    """
    try:
        return JobSpec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where} must be TOML, but is not: {error}") from None
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {'; '.join(map(_message, error.errors()))}") from None


def json_schema() -> str:
    """The JSON schema of job files, for editors."""
    return json.dumps(JobSpec.model_json_schema(), indent=2, sort_keys=True) + "\n"


def _message(error: Any) -> str:
    location = error["loc"]
    if error["type"] == "extra_forbidden":
        return _unknown_key(location)
    name = ".".join(map(str, location)) or "job"
    if error["type"] == "missing":
        return f"key `{name}` must be given, but is not there"
    if error["type"] == "value_error":
        return f"key `{name}`: {error['ctx']['error']}"
    return f"key `{name}` is {error['input']!r}, but: {error['msg']}"


def _unknown_key(location: tuple[str | int, ...]) -> str:
    allowed = sorted(_section(location[:-1]).model_fields)
    close = difflib.get_close_matches(str(location[-1]), allowed, 1)
    hint = f" did you mean `{close[0]}`?" if close else ""
    return f"unknown key `{'.'.join(map(str, location))}`;{hint} Allowed are: {', '.join(allowed)}"


def _section(location: tuple[str | int, ...]) -> type[BaseModel]:
    model: type[BaseModel] = JobSpec
    for part in location:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            choices = [annotation, *get_args(annotation)]
            model = next(c for c in choices if isinstance(c, type) and issubclass(c, BaseModel))
    return model
