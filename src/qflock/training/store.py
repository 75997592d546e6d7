"""Where a run lives: a folder or a bucket, behind a few whole-file operations that fsspec can do everywhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from qflock.errors import ConfigurationError, RunError

SCHEMES = {"file": None, "memory": None, "gs": "gcsfs", "s3": "s3fs"}
EXTRAS = {"gs": "gcs", "s3": "s3"}
CREDENTIALS = {
    "gs": "Google application default credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud, or the node's account)",
    "s3": "the AWS credential chain (AWS_ACCESS_KEY_ID, AWS_PROFILE, or the node's role)",
    "file": "this user's file permissions",
    "memory": "none",
}
ATTEMPTS = 5
FIRST_PAUSE = 0.2
Result = TypeVar("Result")


class Store:
    """Whole files below one URL. Every write is atomic: a reader sees the old content or the new one.

    Args:
        url: A path, or `file://`, `gs://`, `s3://`, `memory://` followed by a path.

    Raises:
        ConfigurationError: If the scheme is unknown or its package is missing.

    Example:
        >>> store = Store("memory://example/run")
        >>> store.write("status.json", b"{}")
        >>> store.read("status.json"), store.list("")
        (b'{}', ['status.json'])
    """

    def __init__(self, url: str) -> None:
        self.scheme, path = _split(url)
        self.url = url.rstrip("/")
        self._filesystem: Any = _filesystem(self.scheme)
        self._root = os.path.abspath(path) if self.scheme == "file" else path.strip("/")

    def local_path(self) -> Path | None:
        """The folder, if the store is one on this machine."""
        return Path(self._root) if self.scheme == "file" else None

    def read(self, name: str) -> bytes:
        """The content of a file; `RunError` if there is none."""
        return self._attempt("read", name, lambda: bytes(self._filesystem.cat_file(self._path(name))))

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return self._attempt("look up", name, lambda: bool(self._filesystem.isfile(self._path(name))))

    def write(self, name: str, content: bytes) -> None:
        """Writes a whole file, or leaves the old one as it was."""
        write = self._write_local if self.scheme == "file" else self._filesystem.pipe_file
        self._attempt("write", name, lambda: write(self._path(name), content))

    def delete(self, name: str) -> None:
        """Removes a file; nothing happens if there is none."""

        def remove() -> None:
            try:
                self._filesystem.rm_file(self._path(name))
            except FileNotFoundError:
                return

        self._attempt("delete", name, remove)

    def list(self, folder: str) -> list[str]:
        """Names of the files and folders right below `folder`, sorted; none if there is no such folder."""

        def names() -> list[str]:
            self._filesystem.invalidate_cache()
            try:
                found = self._filesystem.ls(self._path(folder), detail=False)
            except FileNotFoundError:
                return []
            return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in found)

        return self._attempt("list", folder, names)

    def _path(self, name: str) -> str:
        if name.startswith("/") or ".." in name.split("/"):
            raise RunError(f"Name {name!r} must stay inside of the run {self.url}")
        return f"{self._root}/{name}" if name else self._root

    def _write_local(self, path: str, content: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.getpid()}.part"
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _attempt(self, verb: str, name: str, action: Callable[[], Result]) -> Result:
        """Repeats `action` with back-off while it fails for a reason that may pass."""
        place = f"{self.url}/{name}" if name else self.url
        for attempt in range(ATTEMPTS):
            try:
                return action()
            except Exception as error:
                reason = _permanent_reason(error)
                if reason is None and self.scheme != "file" and attempt + 1 < ATTEMPTS:
                    time.sleep(FIRST_PAUSE * 2**attempt)
                    continue
                detail = reason or f"{_one_line(error)} (after {attempt + 1} attempts)"
                raise RunError(
                    f"Cannot {verb} {place}: {detail}; credential: {CREDENTIALS[self.scheme]}"
                ) from error
        raise AssertionError("unreachable: the last attempt returns or raises")


def _split(url: str) -> tuple[str, str]:
    if "://" not in url:
        return "file", url
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ConfigurationError(
            f"A run must be a folder or start with one of {', '.join(s + '://' for s in SCHEMES)}, but is {url!r}"
        )
    path = parts.netloc + parts.path
    if parts.scheme != "file" and not parts.netloc:
        raise ConfigurationError(
            f"A run in a bucket must look like {parts.scheme}://bucket/name, but is {url!r}"
        )
    return parts.scheme, path


def _filesystem(scheme: str) -> Any:
    import fsspec

    if scheme == "gs":  # otherwise every first call waits for a gRPC service that most buckets do not have
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        # Listings of another process's files must be seen at once.
        return fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError:
        raise ConfigurationError(
            f"Package {SCHEMES[scheme]!r} is missing, which {scheme}:// needs; "
            f"install it with `pip install 'qflock[{EXTRAS[scheme]}]'`"
        ) from None


_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (FileNotFoundError, "there is no such file, folder or bucket"),
    (PermissionError, "permission is denied"),
    (NotADirectoryError, "a part of the path is a file"),
    (IsADirectoryError, "it is a folder"),
)


def _permanent_reason(error: BaseException) -> str | None:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    text = f"{type(error).__name__}: {error}".lower()
    if "credential" in text:
        return f"no usable credentials ({_one_line(error)})"
    code = str(getattr(error, "code", None) or getattr(error, "status", ""))
    if code in ("400", "401", "403", "404"):
        return _one_line(error)
    return None


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
