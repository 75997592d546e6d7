"""Where a run lives: a folder or a bucket, behind a few whole-file operations that fsspec can do everywhere."""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from qflock.errors import RunError, StoreError, StoreUnreachableError
from qflock.training.credentials import credential_of
from qflock.training.faults import Fault, fault_of, forbidden
from qflock.training.filesystems import BUCKETS, open_filesystem, split_url

PATIENCE = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
UNFINISHED = ".part"
Result = TypeVar("Result")
log = logging.getLogger("qflock")


class Store:
    """Whole files below one URL. Every write is atomic: a reader sees the old content or the new one.

    Args:
        url: A path, or `file://`, `gs://`, `s3://`, `memory://` followed by a path.
        patience: Seconds for which a bucket's passing faults are met with another attempt.

    Raises:
        ConfigurationError: If the scheme is unknown or its package is missing.
        StoreError: From every method, if the store refuses; `StoreUnreachableError` if it does not answer in time.

    Example:
        >>> store = Store("memory://example/run")
        >>> store.write("status.json", b"{}")
        >>> store.read("status.json"), store.list("")
        (b'{}', ['status.json'])
    """

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        self.scheme, path = split_url(url)
        self.url = url.rstrip("/")
        self._patience = patience
        self._filesystem: Any = open_filesystem(self.scheme)
        self._local = self.scheme == "file"
        self._root = os.path.abspath(path) if self._local else path.strip("/")
        self._bucket_seen = self.scheme not in BUCKETS

    def local_path(self) -> Path | None:
        """The folder, if the store is one on this machine."""
        return Path(self._root) if self._local else None

    def read(self, name: str) -> bytes:
        """The content of a file; `RunError` if there is none."""

        def content() -> bytes | None:
            try:
                return bytes(self._filesystem.cat_file(self._path(name)))
            except FileNotFoundError:
                self._require_bucket()
                return None

        found = self._attempt("read", name, content)
        if found is None:
            raise RunError(f"{self._place(name)} must be a file of the run, but there is none")
        return found

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""

        def is_file() -> bool:
            # Not fsspec's `isfile`, to which every error means that there is no file.
            try:
                return bool(self._filesystem.info(self._path(name))["type"] == "file")
            except NotADirectoryError:  # below a file there is nothing
                return False
            except FileNotFoundError:
                self._require_bucket()
                return False

        return self._attempt("look up", name, is_file)

    def write(self, name: str, content: bytes) -> None:
        """Writes a whole file, or leaves the old one as it was."""

        def put() -> None:
            if self._local:
                return _write_local(self._path(name), lambda file: file.write(content))
            self._in_bucket(lambda: self._filesystem.pipe_file(self._path(name), content))

        self._attempt("write", name, put)

    def put(self, name: str, source: Path) -> None:
        """Writes a whole file from one of this machine, in pieces, or leaves the old one as it was."""

        def put() -> None:
            if self._local:
                with open(source, "rb") as content:
                    return _write_local(self._path(name), lambda file: shutil.copyfileobj(content, file))
            self._in_bucket(lambda: self._filesystem.put_file(str(source), self._path(name)))

        self._attempt("write", name, put)

    def extend(self, name: str, content: bytes) -> None:
        """Writes a file whose old content begins the new one; in a folder it grows in place, for those who follow it."""

        def append() -> None:
            os.makedirs(os.path.dirname(self._path(name)), exist_ok=True)
            with open(self._path(name), "ab") as file:
                file.write(content[file.tell() :])

        if self._local:
            self._attempt("write", name, append)
        else:
            self.write(name, content)

    def delete(self, name: str) -> None:
        """Removes a file; nothing happens if there is none."""

        def remove() -> None:
            with suppress(FileNotFoundError):
                self._filesystem.rm_file(self._path(name))

        self._attempt("delete", name, remove)

    def list(self, folder: str) -> list[str]:
        """Names of the files and folders right below `folder`, sorted; none if there is no such folder."""

        def names() -> list[str]:
            self._filesystem.invalidate_cache()
            try:
                found = self._filesystem.ls(self._path(folder), detail=False)
            except FileNotFoundError:
                self._require_bucket()
                return []
            return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in found)

        return self._attempt("list", folder, names)

    def remove_unfinished(self) -> None:
        """Removes what killed writers have left in a folder; only while nobody else writes."""
        if self._local:
            for path in Path(self._root).rglob(f"*{UNFINISHED}"):
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> str:
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise RunError(f"Name {name!r} must stay inside of the run {self.url}")
        return f"{self._root}/{name}" if name else self._root

    def _place(self, name: str) -> str:
        return f"{self.url}/{name}" if name else self.url

    def _in_bucket(self, action: Callable[[], object]) -> None:
        try:
            action()
        except FileNotFoundError:
            self._require_bucket()
            raise

    def _require_bucket(self) -> None:
        """Tells a missing bucket from a missing file; asked once, when the first file is missing."""
        if self._bucket_seen:
            return
        bucket = self._root.split("/")[0]
        try:
            self._filesystem.info(bucket)
        except FileNotFoundError:
            raise StoreError(
                f"Bucket {self.scheme}://{bucket} must exist, but there is none that is visible with the credential in use: "
                f"{credential_of(self.scheme, self._filesystem)}"
            ) from None
        except Exception as error:
            if not forbidden(error):  # who may use a bucket need not be allowed to look at it
                raise
        self._bucket_seen = True

    def _attempt(self, verb: str, name: str, action: Callable[[], Result]) -> Result:
        """Repeats `action` with back-off while it fails for a reason that may pass."""
        end = time.monotonic() + self._patience
        attempt = 0
        while True:
            try:
                return action()
            except RunError:
                raise
            except Exception as error:
                attempt += 1
                fault = fault_of(error, self._local)
                pause = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1)
                if not fault.passing or time.monotonic() + pause > end:
                    raise self._refused(f"Cannot {verb} {self._place(name)}", fault, attempt) from error
                if attempt == 1:
                    log.warning("Cannot %s %s yet: %s; trying again", verb, self._place(name), fault.text)
            time.sleep(pause)

    def _refused(self, what: str, fault: Fault, attempts: int) -> StoreError:
        credential = credential_of(self.scheme, self._filesystem)
        if fault.passing:
            return StoreUnreachableError(
                f"{what}: {fault.text}; given up after {attempts} attempts; credential: {credential}"
            )
        return StoreError(f"{what}: {fault.text}; credential: {credential}")


def _write_local(path: str, fill: Callable[[BinaryIO], object]) -> None:
    """Never visible under its name before it is on the disk."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    temporary = f"{path}.{os.getpid()}{UNFINISHED}"
    try:
        with open(temporary, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """A new name outlives a power cut only once the folder is on the disk, too."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
