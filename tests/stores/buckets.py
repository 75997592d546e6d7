"""Buckets on real emulator servers over HTTP."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.stores.faulty_proxy import FaultyProxy

BUCKET = "runs"


@dataclass(frozen=True)
class Bucket:
    """One bucket behind a proxy.

    Args:
        scheme: "gs" or "s3".
        proxy: In front of the emulator.
        environment: Variables that lead a process to the proxy.
    """

    scheme: str
    proxy: FaultyProxy
    environment: dict[str, str] = field(default_factory=dict)

    def url(self, name: str) -> str:
        """A place in the bucket."""
        return f"{self.scheme}://{BUCKET}/{name}"


@contextmanager
def google() -> Iterator[Bucket]:
    """A bucket on gcp-storage-emulator."""
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
    server.start()
    proxy = FaultyProxy(f"http://127.0.0.1:{server._api._httpd.server_address[1]}")
    yield Bucket("gs", proxy, {"STORAGE_EMULATOR_HOST": proxy.url, "NO_GCE_CHECK": "true"})
    proxy.close()
    server.stop()


@contextmanager
def amazon() -> Iterator[Bucket]:
    """A bucket on moto's server."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/{BUCKET}", method="PUT")).close()
    proxy = FaultyProxy(f"http://{host}:{port}")
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    yield Bucket("s3", proxy, {"AWS_ENDPOINT_URL": proxy.url, "AWS_DEFAULT_REGION": "us-east-1", **keys})
    proxy.close()
    server.stop()
