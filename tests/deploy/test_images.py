"""The images: what can be known of them without an engine that builds them. `tests/soak` runs their commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from docker.utils import exclude_paths
from dockerfile_parse import DockerfileParser

from qflock.deploy.pods import pod_security
from qflock.deploy.render import manifests
from tests.deploy.jobs import PLAIN

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = ["Dockerfile", "tensorboard.Dockerfile"]


def instructions(name: str) -> list[tuple[str, str]]:
    """Instructions and their values, in order."""
    parser = DockerfileParser(fileobj=(ROOT / name).open("rb"))
    return [(each["instruction"], each["value"]) for each in parser.structure]


def context(root: Path = ROOT) -> set[str]:
    """The files that `docker build` sends, as Docker's own client picks them."""
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in patterns if line and not line.startswith("#")]
    return {path for path in exclude_paths(str(root), patterns) if (root / path).is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_the_linter_finds_nothing(name: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--no-color", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_every_copied_path_is_in_the_context(name: str) -> None:
    sent = context()
    for instruction, value in instructions(name):
        if instruction == "COPY" and not value.startswith("--from"):
            for source in value.split()[:-1]:
                assert any(path == source or path.startswith(f"{source}/") for path in sent), source


def test_the_context_holds_the_sources_and_nothing_else(tmp_path: Path) -> None:
    sources = {str(each.relative_to(ROOT)) for each in (ROOT / "src").rglob("*") if each.is_file()}
    built = {each for each in sources if each.endswith(".so") or "__pycache__" in each}
    files = {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", *(sources - built)}
    # In a copy, so that what others have built beside the sources does not count, but what is ignored does.
    for path in [
        *files,
        "src/qflock/engine/_native.so",
        ".env",
        ".git/config",
        "runs/a/weights",
        "src/x/__pycache__/y.pyc",
    ]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    sent = context(tmp_path)
    assert sent - {"Dockerfile", ".dockerignore"} == files
    assert "src/qflock/deploy/prices.toml" in sent
    assert "src/qflock/engine/native/module.cc" in sent


@pytest.mark.parametrize("name", NAMES)
def test_images_run_as_the_user_that_pods_run_as(name: str) -> None:
    last = [value for instruction, value in instructions(name) if instruction == "USER"][-1]
    expected = pod_security()
    assert last == f"{expected['runAsUser']}:{expected['runAsGroup']}"


@pytest.mark.parametrize("name", NAMES)
def test_the_last_stage_has_no_compiler(name: str) -> None:
    stages = "\n".join(" ".join(each) for each in instructions(name)).split("FROM ")
    assert "g++" not in stages[-1]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_tmp_is_written(name: str) -> None:
    settings = " ".join(value for instruction, value in instructions(name) if instruction == "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in settings
    folders = dict(re.findall(r"(HOME|TMPDIR|MPLCONFIGDIR)=(\S+)", settings))
    assert folders["HOME"] == folders["TMPDIR"] == "/tmp"
    assert all(folder.startswith("/tmp") for folder in folders.values())


def test_the_image_has_what_pods_run_and_the_extras_exist() -> None:
    installed = next(value for _, value in instructions("Dockerfile") if "/wheels/*.whl" in value)
    extras = re.search(r"\[([-a-z0-9,]+)\]", installed)[1].split(",")
    assert extras == ["train-cpu", "gcs", "s3"]
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    programs = set(PROJECT["scripts"])
    for each in [*manifests(PLAIN), *manifests(PLAIN, "infer")]:
        if each["kind"] == "Job":
            assert each["spec"]["template"]["spec"]["containers"][0]["command"][0] in programs


def test_the_tensorboard_image_is_as_new_as_the_extras_and_has_no_tensorflow() -> None:
    installed = next(value for _, value in instructions("tensorboard.Dockerfile") if "pip install" in value)
    wanted = set(re.findall(r'"([^"]+)"', installed))
    extras = PROJECT["optional-dependencies"]
    assert wanted <= {*extras["train-cpu"], *extras["gcs"], *extras["s3"]}
    assert {re.match(r"[a-z0-9]+", each)[0] for each in wanted} == {"tensorboard", "xprof", "gcsfs", "s3fs"}
