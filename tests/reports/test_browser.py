"""Pages in a real browser. Debian: apt-get install chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from qflock.planning.picture import write_plan
from qflock.reports.report import write_report
from tests.planning.figures import made_plan
from tests.reports.made_run import make_run, write_readouts

pytestmark = pytest.mark.browser
ARTEFACTS = Path("build/screenshots")


@pytest.fixture
def browser_page(request: pytest.FixtureRequest) -> Iterator[Page]:
    with sync_playwright() as playwright:
        # As root, which containers often are, Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        failed_before = request.session.testsfailed
        yield page
        if request.session.testsfailed > failed_before:
            ARTEFACTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=ARTEFACTS / f"{request.node.name}.png", full_page=True)
        browser.close()


def made_report(folder: Path) -> str:
    make_run(folder, extra={"<script>fetch('http://127.0.0.1:9/')</script>": 1.0})
    write_readouts(folder)
    return write_report([str(folder)])


def test_report_opens_from_a_file_without_network(tmp_path: Path, browser_page: Page) -> None:
    check_page(Path(made_report(tmp_path / "run")), browser_page, pictures=7)


def test_plan_opens_from_a_file_without_network(tmp_path: Path, browser_page: Page) -> None:
    check_page(Path(write_plan(made_plan(), str(tmp_path))), browser_page, pictures=3)


def check_page(file: Path, page: Page, pictures: int) -> None:
    """Every picture shows, nothing scrolls sideways, and nothing is said or asked of anyone."""
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    sizes = page.eval_on_selector_all("img", "all => all.map(img => img.complete && img.naturalWidth)")
    assert len(sizes) == pictures and all(sizes)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert messages == []
    assert [url for url in requests if url != file.as_uri() and not url.startswith("data:")] == []
    assert page.pdf(format="A4").startswith(b"%PDF")
