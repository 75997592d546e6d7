"""Job files: what is refused, and with which words."""

from __future__ import annotations

import json

import pytest

from qflock.deploy.checks import check_for_cluster
from qflock.deploy.files import json_schema, parse_job, read_job
from qflock.deploy.spec import JobSpec, Resources
from qflock.errors import ConfigurationError, MemoryBudgetError

REFUSED = [
    ('name = "a"\nworker = 3', "did you mean `workers`?"),
    (
        'name = "a"\n[resources]\nmemry = "1Gi"',
        "`resources.memry`; did you mean `memory`? Allowed are: cpu, memory",
    ),
    ('name = "a"\n[google]\nprojct = "x"', "did you mean `project`?"),
    ('name = "a"\n[[schedule.tolerations]]\nkei = "x"', "did you mean `key`?"),
    ('name = "Not_a_label"', "`name` is 'Not_a_label'"),
    ("workers = 2", "`name` must be given"),
    ('name = "a"\nworkers = 0', "greater than or equal to 1"),
    ('name = "a"\nworkers = 1001', "less than or equal to 1000"),
    ('name = "a"\nworkers = "2"', "valid integer"),
    ('name = "a"\nkind = "pod"', "'indexed-job', 'jobset' or 'tfjob'"),
    ('name = "a"\nport = 2223', "must differ"),
    ('name = "a"\nservice_account = "default"', "account of the job's own"),
    ('name = "a"\n[environment]\nTF_CONFIG = "{}"', "must not set TF_CONFIG"),
    ('name = "a"\n[experiment]\narchitecture = "deep"', "must be one of hybrid"),
    ('name = "a"\n[experiment]\nwhat = "nothing"', "path/to/file.py:name"),
    ('name = "a"\n[experiment]\nwhat = "-x.py:e"', "path/to/file.py:name"),
    ('name = "a"\n[environment]\nHOME = "/x"', "must not set HOME"),
    ('name = "a"\n[environment]\n"A=B" = "x"', "String should match pattern"),
    ('name = "a"\n[schedule.node_selector]\n"a b" = "c"', "String should match pattern"),
    ('name = "a"\n[schedule.node_selector]\na = "c d"', "String should match pattern"),
    (
        'name = "a"\n[[schedule.tolerations]]\nkey = "a"\noperator = "Exists"\nvalue = "b"',
        "no value where the operator is Exists",
    ),
    ('name = "a"\n[limits]\nstall_seconds = 99999999999999', "less than or equal to"),
    *(
        (f'name = "a"\nstore = "{store}"', "must be gs://BUCKET/FOLDER")
        for store in (
            "gs://",
            "gs://b/../c",
            "gs://B_/x",
            "gs://bucket/x\\ny",
            "gs://u:p@b/x",
            "s3://bucket/$(VAR)",
        )
    ),
    ("name = ", "must be TOML"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_bad_job_files_get_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_job(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        read_job(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "size"), [("4Gi", 4 << 30), ("1.5G", 1_500_000_000), ("512Mi", 512 << 20), ("7", 7)]
)
def test_memory_in_bytes(text: str, size: int) -> None:
    assert Resources(memory=text).memory_bytes == size


@pytest.mark.parametrize("store", ["", "runs/first", "file:///runs", "memory://x"])
def test_a_cluster_needs_a_remote_store(store: str) -> None:
    with pytest.raises(ConfigurationError, match="every pod reaches"):
        check_for_cluster(JobSpec(name="a", store=store))


def test_memory_too_small_is_refused_with_the_estimate() -> None:
    text = 'name = "a"\nstore = "gs://bucket/a"\n[experiment]\narchitecture = "full"\nqubits = 30'
    with pytest.raises(MemoryBudgetError, match=r"17\.1 GiB for 30 qubits, but is 4Gi"):
        check_for_cluster(parse_job(text))
    check_for_cluster(parse_job(text + '\n[resources]\nmemory = "20Gi"'))


def test_memory_too_small_for_tensorflow_is_refused_whatever_is_trained() -> None:
    text = 'name = "a"\nstore = "gs://bucket/a"\n[resources]\nmemory = "512Mi"'
    with pytest.raises(MemoryBudgetError, match=r"1\.1 GiB for 8 qubits, but is 512Mi"):
        check_for_cluster(parse_job(text))
    with pytest.raises(MemoryBudgetError):
        check_for_cluster(parse_job(text + '\n[experiment]\nwhat = "my.py:experiment"'))


def test_json_schema_lists_the_keys() -> None:
    schema = json.loads(json_schema())
    assert set(schema["properties"]) == set(JobSpec.model_fields)
    assert schema["additionalProperties"] is False
