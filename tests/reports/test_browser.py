"""The page in a real browser. Debian: apt-get install chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from qflock.reports.report import write_report
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


def test_report_opens_from_a_file_without_network(tmp_path: Path, browser_page: Page) -> None:
    run = tmp_path / "run"
    make_run(run, extra={"<script>fetch('http://127.0.0.1:9/')</script>": 1.0})
    write_readouts(run)
    messages: list[str] = []
    requests: list[str] = []
    browser_page.on("console", lambda message: messages.append(message.text))
    browser_page.on("pageerror", lambda error: messages.append(str(error)))
    browser_page.on("request", lambda request: requests.append(request.url))
    address = Path(write_report([str(run)])).as_uri()
    browser_page.goto(address)
    sizes = browser_page.eval_on_selector_all(
        "img", "all => all.map(img => img.complete && img.naturalWidth)"
    )
    assert len(sizes) >= 7 and all(sizes)
    assert browser_page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert messages == []
    assert [url for url in requests if url != address and not url.startswith("data:")] == []
    assert browser_page.pdf(format="A4").startswith(b"%PDF")
