"""Every Python and bash snippet of the documentation runs, and prints what the `text` block after it says.

Blocks marked `console` are shown, not run: they install software or need several machines.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Document, Example
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PRINTED = "_printed_by_the_block_before"
evaluate_python = PythonEvaluator()


def run_python(example: Example) -> None:
    """Runs in the namespace that all Python blocks of a document share."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        evaluate_python(example)
    example.namespace[PRINTED] = output.getvalue()


def run_bash(example: Example) -> None:
    """Runs with the `qflock` of this interpreter."""
    command = f'qflock() {{ "{sys.executable}" -m qflock.cli "$@"; }}\n{example.parsed}'
    finished = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
    assert finished.returncode == 0, f"{example.parsed}\n{finished.stdout}\n{finished.stderr}"
    example.namespace[PRINTED] = finished.stdout


def check_text(example: Example) -> None:
    """Compares where a block before has printed; other `text` blocks are just text."""
    printed = example.namespace.pop(PRINTED, "")
    assert not printed or printed.rstrip() == str(example.parsed).rstrip(), (printed, example.parsed)


PARSERS = (
    CodeBlockParser("python", run_python),
    CodeBlockParser("bash", run_bash),
    CodeBlockParser("text", check_text),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_snippets_do_what_they_show(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for example in Document.parse(os.fspath(path), *PARSERS).examples():
        example.evaluate()


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match="3"):
        for example in Document.parse(os.fspath(page), *PARSERS).examples():
            example.evaluate()
