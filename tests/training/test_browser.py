"""TensorBoard of a two-worker run in a real browser. Debian: apt-get install chromium."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from qflock.cluster.ports import free_ports
from tests.training.commands import start

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
PATIENCE = 60_000.0  # milliseconds; the pages are large, and machines that run tests are busy


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `qflock tensorboard` on a run of two workers with a profile."""
    run = tmp_path_factory.mktemp("browser") / "run"
    what = ("--qubits", 4, "--examples", 24, "--epochs", 5, "--workers", 2, "--profile", "3,6")
    training = start("train", "qcnn", *what, "--run", run)
    output, _ = training.communicate(timeout=600)
    assert training.returncode == 0, output
    (port,) = free_ports(1)
    server = start("tensorboard", run, "--port", port)
    _wait_for(f"http://localhost:{port}/data/plugin/scalars/tags", "step_loss", server)
    yield f"http://localhost:{port}"
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=30)


def _wait_for(address: str, text: str, server: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 240
    while True:
        assert server.poll() is None and time.monotonic() < end
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if text in answer.read().decode():
                    return
        except OSError:  # not yet listening
            pass
        time.sleep(0.2)


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1200})
        failed = request.session.testsfailed
        yield page
        if request.session.testsfailed > failed:
            folder = Path("build/screenshots")
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{request.node.name}.png")
        browser.close()


@pytest.mark.parametrize(
    ("tab", "names"),
    [
        ("scalars", ["step_loss", "circuits_per_second", "step_seconds", "gradient_norm"]),
        ("histograms", ["readouts/filter0", "weights", "gradients/filter0/parameters"]),
        ("images", ["circuit/filter0", "circuit/example"]),
        ("text", ["hyperparameters", "learning_rate", "batch_size"]),
    ],
)
def test_dashboards_show_the_names(board: str, page: Page, tab: str, names: list[str]) -> None:
    page.goto(f"{board}/#{tab}")
    for name in names:
        expect(page.get_by_text(name).first).to_be_visible(timeout=PATIENCE)


def test_circuit_pictures_are_drawn(board: str, page: Page) -> None:
    page.goto(f"{board}/#images")
    picture = page.locator("img[src*='individualImage']").first
    expect(picture).to_be_visible(timeout=PATIENCE)
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


def test_the_graph_shows_the_model(board: str, page: Page) -> None:
    page.goto(f"{board}/#graphs")
    page.locator("title", has_text="qcnn_hybrid").first.wait_for(state="attached", timeout=PATIENCE)


def test_the_profile_overview_shows_the_steps(board: str, page: Page) -> None:
    # Its pie and step charts come from Google Charts, which need the internet: only the text is looked at.
    page.goto(f"{board}/#profile")
    inner = page.frame_locator("iframe")
    for name in ("Performance Summary", "Host Compute Time", "steps-3-6"):
        expect(inner.get_by_text(name).first).to_be_visible(timeout=PATIENCE)


@pytest.mark.parametrize("worker", ["worker-0", "worker-1"])
def test_the_trace_viewer_shows_the_engine(board: str, page: Page, worker: str) -> None:
    with page.expect_response(
        lambda r: "/profile/data?" in r.url and worker in r.url, timeout=PATIENCE
    ) as got:
        page.goto(f"{board}/?run=steps-3-6&tag=trace_viewer@&hosts={worker}&host={worker}#profile")
    names = {event.get("name") for event in json.loads(got.value.text())["traceEvents"]}
    assert {"train 4", "qflock.forward", "qflock.backward", "qflock.wait for peers"} <= names
    viewer = page.frame_locator("iframe").frame_locator("iframe")
    expect(viewer.get_by_text(f"{worker} /host:CPU").last).to_be_visible(timeout=PATIENCE)
