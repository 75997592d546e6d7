"""Which credential a file system uses, in words that hold no secret."""

from __future__ import annotations

import os
from typing import Any

NO_GOOGLE = (
    "none was found (set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`)"
)
NO_AWS = "none was found (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)"


def credential_of(scheme: str, filesystem: Any) -> str:
    """Names the credential behind an fsspec file system.

    Args:
        scheme: "file", "memory", "gs" or "s3".
        filesystem: Of that scheme.
    """
    if scheme == "gs":
        return _google(filesystem)
    if scheme == "s3":
        return _aws(filesystem)
    return f"user id {os.geteuid()}" if scheme == "file" else "none is needed"


def _google(filesystem: Any) -> str:
    credentials = filesystem.credentials.credentials
    if credentials is None:
        return NO_GOOGLE
    account = getattr(credentials, "service_account_email", None) or getattr(credentials, "account", None)
    file = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    source = f"the file {file}" if file else "Google's application default credentials"
    return f"{account or type(credentials).__name__} from {source}"


def _aws(filesystem: Any) -> str:
    from fsspec.asyn import sync

    session = filesystem.session
    found = sync(filesystem.loop, session.get_credentials, timeout=5) if session else None
    if found is None:
        return NO_AWS
    return f"the access key that ends in {found.access_key[-4:]!r} (source: {found.method})"
