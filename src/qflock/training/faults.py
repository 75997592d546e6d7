"""What an error of a file system means: whether it may pass, and what to say about it in one line."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

# Answers that ask for the same request again; every other one from 400 to 499 will stay as it is.
PASSING_STATUS = (408, 425, 429)
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (FileNotFoundError, "there is no such file or folder"),
    (PermissionError, "permission is denied"),
    (NotADirectoryError, "a part of the path is a file"),
    (IsADirectoryError, "it is a folder"),
)
_NUMBERS = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EFBIG: "the file is larger than this process may write",
}
_STATUS = {401: "the credential is not accepted", 403: "permission is denied"}


@dataclass(frozen=True)
class Fault:
    """One failed operation.

    Args:
        text: What happened, on one line.
        passing: Whether the same operation may succeed a little later.
    """

    text: str
    passing: bool = False


def fault_of(error: BaseException, local: bool) -> Fault:
    """What `error` means.

    Args:
        error: Raised by an fsspec file system.
        local: Whether that is a folder of this machine, where trying again does not help.
    """
    for kind, text in _KINDS:
        if isinstance(error, kind):
            return Fault(text if local else f"{text} ({one_line(error)})")
    if local:
        number = getattr(error, "errno", None)
        return Fault(_NUMBERS.get(number or 0) or one_line(error))
    if any("Credential" in type(part).__name__ for part in _chain(error)):
        return Fault(f"no usable credential ({one_line(error)})")
    status = _status(error)
    if status is not None:
        text = f"{_STATUS[status]} ({one_line(error)})" if status in _STATUS else one_line(error)
        return Fault(text, passing=not 400 <= status < 500 or status in PASSING_STATUS)
    return Fault(one_line(error), passing=not isinstance(error, ValueError | TypeError))


def forbidden(error: BaseException) -> bool:
    """Whether a bucket has refused for lack of permission."""
    return isinstance(error, PermissionError) or _status(error) == 403


def one_line(error: BaseException) -> str:
    """Kind and message of an error, shortened to one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _status(error: BaseException) -> int | None:
    """The HTTP status behind an error: gcsfs has it in `code`, aiohttp in `status`, botocore in `response`."""
    for part in _chain(error):
        if isinstance(part, OSError) and str(part).startswith("Forbidden"):  # gcsfs' 403
            return 403
        response = getattr(part, "response", None)
        metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
        for value in (
            getattr(part, "code", None),
            getattr(part, "status", None),
            metadata.get("HTTPStatusCode"),
        ):
            if str(value).isdigit():
                return int(str(value))
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
