"""The fsspec file system behind a URL, set up so that one place alone, the store, decides about patience."""

from __future__ import annotations

import logging
import os
from typing import Any
from urllib.parse import urlsplit

from qflock.errors import ConfigurationError

SCHEMES = {"file": None, "memory": None, "gs": "gcsfs", "s3": "s3fs"}
BUCKETS = ("gs", "s3")
_EXTRAS = {"gs": "gcs", "s3": "s3"}
CONNECT_SECONDS = 10
REPLY_SECONDS = 20


def split_url(url: str) -> tuple[str, str]:
    """Scheme and path of a folder or URL.

    Raises:
        ConfigurationError: If the scheme is unknown, or the URL names no bucket or leaves it.
    """
    if not url.strip():
        raise ConfigurationError(f"A run must be a folder or a URL, but is {url!r}")
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
    if parts.scheme != "file" and ".." in path.split("/"):
        raise ConfigurationError(f"A run in a bucket must be named without '..', but is {url!r}")
    return parts.scheme, path


def open_filesystem(scheme: str) -> Any:
    """The file system of a scheme, which must see at once what other processes write.

    Raises:
        ConfigurationError: If its package is missing.
    """
    import fsspec

    try:
        filesystem = fsspec.filesystem(scheme, use_listings_cache=False, **_options(scheme))
    except ImportError:
        raise ConfigurationError(
            f"Package {SCHEMES[scheme]!r} is missing, which {scheme}:// needs; "
            f"install it with `pip install 'qflock[{_EXTRAS[scheme]}]'`"
        ) from None
    if scheme == "s3":
        filesystem.retries = 1
    return filesystem


def _options(scheme: str) -> dict[str, Any]:
    if scheme == "gs":
        # Otherwise every first call waits up to a minute for a gRPC service that most buckets and no emulator have.
        # It is read when gcsfs is imported.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        import aiohttp

        # Both log, gcsfs even with a traceback, what they also raise.
        for name in ("gcsfs", "google.auth"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # No limit on the whole request, which grows with the size of a checkpoint.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=REPLY_SECONDS)
        return {"requests_timeout": timeout}
    if scheme == "s3":
        return {
            "config_kwargs": {
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": REPLY_SECONDS,
                "retries": {"total_max_attempts": 1},
            }
        }
    return {}
