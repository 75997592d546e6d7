from __future__ import annotations

import logging
from collections.abc import Iterator

import fsspec
import pytest

from tests.stores.buckets import Bucket, amazon, google


@pytest.fixture(scope="module")
def _google() -> Iterator[Bucket]:
    with google() as bucket:
        yield bucket


@pytest.fixture(scope="module")
def _amazon() -> Iterator[Bucket]:
    with amazon() as bucket:
        yield bucket


@pytest.fixture(params=["gs", "s3"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket that works, reached through the environment as a user would."""
    found: Bucket = request.getfixturevalue({"gs": "_google", "s3": "_amazon"}[request.param])
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    found.proxy.use(lambda number, method, path: None)
    yield found
    # A file system is kept by fsspec, with the endpoint and the credential of its first use.
    for name in ("gs", "s3"):
        fsspec.get_filesystem_class(name).clear_instance_cache()
