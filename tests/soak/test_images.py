"""The images' own commands, run here in fresh environments: what they install, how large it is, and that it works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcsfs.core import GCSFileSystem

from qflock.cluster.ports import free_ports
from qflock.deploy.companions import tensorboard
from qflock.deploy.spec import JobSpec
from tests.deploy.test_images import ROOT, context, instructions

pytestmark = pytest.mark.soak

LIMIT_BYTES = 1_500_000_000
# Of python:3.12-slim-trixie with libgomp1, unpacked, rounded up.
BASE_BYTES = 130_000_000


def installing(name: str) -> list[str]:
    """The commands that install Python packages, without those that need Debian."""
    return [value for word, value in instructions(name) if word == "RUN" and "apt-get" not in value]


def run_here(command: str, folder: Path, moved: dict[str, Path]) -> None:
    """Runs a command of an image with its folders moved, by the Python of these tests."""
    for path, place in moved.items():
        command = command.replace(path, str(place))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(each.lstat().st_size for each in folder.rglob("*") if not each.is_dir())


def wait_for(ask: Callable[[], object], seconds: float = 120) -> object:
    """What `ask` returns once it returns something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if answer := ask():
                return answer
        except OSError:
            pass
        time.sleep(0.5)
    raise TimeoutError(f"nothing after {seconds} s")


def environment(name: str, home: Path) -> dict[str, str]:
    """What the image sets, with its `/tmp` moved, and nothing of this process's Python."""
    kept = {
        key: os.environ[key] for key in ("PATH", "QFLOCK_THREADS", "OMP_WAIT_POLICY") if key in os.environ
    }
    texts = " ".join(value for word, value in instructions(name) if word == "ENV")
    settings = dict(pair.split("=", 1) for pair in texts.split())
    settings.pop("PATH", None)
    return kept | {key: value.replace("/tmp", str(home)) for key, value in settings.items()}


@pytest.mark.timeout(3000)
def test_the_image_is_small_trains_and_predicts(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path in context():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / path)
    installed = tmp_path / "opt"
    for command in installing("Dockerfile"):
        run_here(command, source, {"/opt/qflock": installed, "/wheels": tmp_path / "wheels"})
    total = size(installed)
    print(f"installed packages {total / 1e6:.0f} MB", flush=True)
    assert BASE_BYTES + total < LIMIT_BYTES
    (home := tmp_path / "home").mkdir()
    program = installed / "bin" / "qflock"
    small = "--qubits=4 --examples=16 --epochs=2 --batch-size=8"
    for words in [f"train qcnn {small} --run=run --workers=2 --quiet", "infer run", "doctor"]:
        done = subprocess.run(
            [program, *words.split()],
            cwd=home,
            env=environment("Dockerfile", home),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    assert size(installed) == total, "nothing is written into the image"


@pytest.fixture
def bucket() -> Iterator[str]:
    """A bucket `runs` in an emulator of Google's storage; the address is what gcsfs wants to know."""
    from gcp_storage_emulator.server import create_server

    (port,) = free_ports(1)
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="runs")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


@pytest.mark.timeout(1200)
def test_tensorboard_without_tensorflow_shows_a_run_in_a_bucket(bucket: str, tmp_path: Path) -> None:
    installed = tmp_path / "tb"
    subprocess.run([sys.executable, "-m", "venv", installed], check=True)
    (command,) = installing("tensorboard.Dockerfile")
    run_here(re.sub(r"\bpip\b", f"{installed}/bin/pip", command), tmp_path, {})
    print(f"installed packages {size(installed) / 1e6:.0f} MB", flush=True)
    assert (
        subprocess.run(
            [installed / "bin" / "python", "-c", "import tensorflow"], capture_output=True
        ).returncode
        == 1
    )
    write_run(bucket, tmp_path)
    (port,) = free_ports(1)
    board = next(
        each
        for each in tensorboard(JobSpec(name="first", store="gs://runs/first"))
        if each["kind"] == "Deployment"
    )
    words = board["spec"]["template"]["spec"]["containers"][0]["command"]
    words = [
        installed / "bin" / words[0],
        *(f"--port={port}" if "--port" in word else word for word in words[1:]),
    ]
    settings = environment("tensorboard.Dockerfile", tmp_path) | {"STORAGE_EMULATOR_HOST": bucket}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(words, env=settings, stdout=log, stderr=log) as process,
    ):
        try:
            runs = wait_for(lambda: get(port, "runs"))
            assert runs == ["tensorboard"]
            plugins = get(port, "plugins_listing")
            assert "profile" in plugins
            tags = wait_for(lambda: get(port, "plugin/scalars/tags"))
            assert list(tags["tensorboard"]) == ["loss"]
        finally:
            process.terminate()


def write_run(address: str, folder: Path) -> None:
    """One scalar in an event file, at the place where training puts it."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder / "events"))
    writer.add_event(Event(step=1, summary=Summary(value=[Summary.Value(tag="loss", simple_value=0.5)])))
    writer.close()
    (events,) = (folder / "events").iterdir()
    files = GCSFileSystem(endpoint_url=address, token="anon")
    files.pipe(f"runs/first/tensorboard/{events.name}", events.read_bytes())


def get(port: int, path: str) -> object:
    """TensorBoard's answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/{path}", timeout=10) as answer:
        return json.load(answer)
