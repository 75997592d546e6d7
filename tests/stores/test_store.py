from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qflock.errors import RunError, StoreError, StoreUnreachableError
from qflock.training import filesystems
from qflock.training.store import Store
from tests.stores.buckets import Bucket
from tests.stores.faulty_proxy import Fail, always, first


def test_whole_files_in_a_bucket(bucket: Bucket) -> None:
    store = Store(bucket.url("whole/run"))
    assert store.list("") == [] and not store.exists("a.json")
    store.write("a.json", b"one")
    store.write("a.json", b"two")
    store.write("folder/empty", b"")
    assert (store.read("a.json"), store.read("folder/empty")) == (b"two", b"")
    assert store.list("") == ["a.json", "folder"] and store.list("folder") == ["empty"]
    assert store.exists("a.json") and not store.exists("folder")
    for _ in range(2):
        store.delete("a.json")
    assert store.list("") == ["folder"]
    with pytest.raises(RunError, match=r"whole/run/a\.json must be a file of the run, but there is none"):
        store.read("a.json")


def test_a_local_file_is_put_as_a_whole(bucket: Bucket, tmp_path: Path) -> None:
    store, source = Store(bucket.url("put/run")), tmp_path / "source"
    for content in (b"", b"one", b"0123456789abcdef" * 400_000):  # the last one travels in parts
        source.write_bytes(content)
        store.put("folder/file", source)
        assert store.read("folder/file") == content
    bucket.proxy.use(first(Fail(status=503)))
    store.put("folder/file", source)
    bucket.proxy.use(always(Fail(status=403)))
    source.write_bytes(b"never seen")
    with pytest.raises(StoreError, match=r"^Cannot write .*put/run/folder/file: permission is denied"):
        store.put("folder/file", source)
    bucket.proxy.use(lambda number, method, path: None)
    assert store.read("folder/file") == content


def test_what_another_process_writes_is_seen_at_once(bucket: Bucket) -> None:
    mine, theirs = Store(bucket.url("shared")), Store(bucket.url("shared"))
    for text in (b"1", b"2"):
        assert theirs.list(text.decode()) == []
        mine.write(f"{text.decode()}/file", text)
        assert theirs.list(text.decode()) == ["file"] and theirs.read(f"{text.decode()}/file") == text


@pytest.mark.parametrize(
    "fail",
    [Fail(status=500), Fail(status=503), Fail(cut="before"), Fail(cut="after"), Fail(seconds=0.5)],
    ids=["500", "503", "cut before", "cut after", "slow"],
)
def test_passing_faults_are_met_with_another_attempt(bucket: Bucket, fail: Fail) -> None:
    store = Store(bucket.url("passing"))
    calls: list[tuple[Callable[[], object], object]] = [
        (lambda: store.write("a", b"content"), None),
        (lambda: store.read("a"), b"content"),
        (lambda: store.list(""), ["a"]),
        (lambda: store.exists("a"), True),
        (lambda: store.delete("a"), None),
    ]
    # gcsfs itself waits more than a second before its second attempt.
    for call, expected in calls if bucket.scheme == "s3" else calls[:2]:
        bucket.proxy.use(first(fail))
        assert call() == expected
        assert len(bucket.proxy.requests) > 1 or fail.seconds


def test_a_reply_that_never_comes_is_not_waited_for(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "REPLY_SECONDS", 0.5)
    bucket.proxy.use(first(Fail(seconds=3)))
    Store(bucket.url("silent")).write("a", b"content")
    assert len(bucket.proxy.requests) > 1


def _lasting(bucket: Bucket, fail: Fail) -> None:
    store = Store(bucket.url("lasting"), patience=1.0)
    bucket.proxy.use(always(fail))
    with pytest.raises(StoreUnreachableError) as caught:
        store.write("a", b"content")
    text = str(caught.value)
    assert text.startswith(f"Cannot write {bucket.url('lasting/a')}: ") and "\n" not in text
    assert "given up after" in text and "; credential: " in text
    assert caught.value.exit_code == 143


@pytest.mark.parametrize("fail", [Fail(status=503), Fail(cut="before")], ids=["503", "cut"])
@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_a_lasting_fault_ends_with_one_line(bucket: Bucket, fail: Fail) -> None:
    _lasting(bucket, fail)


@pytest.mark.soak  # gcsfs itself tries for half a minute
@pytest.mark.parametrize("fail", [Fail(status=500), Fail(status=503), Fail(cut="before")])
def test_every_lasting_fault_ends_with_one_line(bucket: Bucket, fail: Fail) -> None:
    _lasting(bucket, fail)


def test_an_error_is_not_taken_for_a_missing_file(bucket: Bucket) -> None:
    store = Store(bucket.url("forbidden"), patience=1.0)
    store.write("a", b"content")
    bucket.proxy.use(always(Fail(status=403)))
    for call in (
        lambda: store.exists("a"),
        lambda: store.read("a"),
        lambda: store.list(""),
        lambda: store.delete("a"),
    ):
        with pytest.raises(StoreError, match="permission is denied"):
            call()


def test_no_permission_says_what_where_and_who(bucket: Bucket) -> None:
    bucket.proxy.use(always(Fail(status=403)))
    with pytest.raises(StoreError) as caught:
        Store(bucket.url("forbidden")).write("a", b"content")
    text, who = (
        str(caught.value),
        {"gs": "none was found", "s3": "the access key that ends in 'ting' (source: env)"},
    )
    assert text.startswith(f"Cannot write {bucket.url('forbidden/a')}: permission is denied")
    assert "\n" not in text and f"; credential: {who[bucket.scheme]}" in text
    assert caught.value.exit_code == 2
    assert len(bucket.proxy.requests) == 1


def test_a_missing_bucket_is_named(bucket: Bucket) -> None:
    store = Store(f"{bucket.scheme}://nowhere/run")
    for call in (
        lambda: store.exists("a"),
        lambda: store.read("a"),
        lambda: store.list(""),
        lambda: store.write("a", b""),
    ):
        with pytest.raises(
            StoreError, match=rf"^Bucket {bucket.scheme}://nowhere must exist, but there is none.*: "
        ):
            call()


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_missing_aws_credentials_are_named(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(
        StoreError, match=r"no usable credential .*credential: none was found \(set AWS_ACCESS_KEY_ID"
    ):
        Store(bucket.url("none")).write("a", b"")


@pytest.mark.parametrize("bucket", ["gs"], indirect=True)
def test_missing_google_credentials_are_named(bucket: Bucket) -> None:
    bucket.proxy.use(always(Fail(status=401)))
    with pytest.raises(
        StoreError, match=r"the credential is not accepted .*credential: none was found \(set GOOGLE_"
    ):
        Store(bucket.url("none")).write("a", b"")
