from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import json, os, resource, sys
from qflock.cluster.launcher import Launch, launch
from qflock.errors import QflockError

def work():
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    {work}
    return 0

{before}
try:
    code = launch(Launch(work, {workers}, restarts=0))
except QflockError as error:
    code = f"error: {{error}}"
sys.exit(code)
"""


def _launch(work: str, workers: int = 3, before: str = "") -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(work=work, workers=workers, before=before)
    return subprocess.run(
        [sys.executable, "-c", program], input="nobody reads this", capture_output=True, text=True, timeout=60
    )


def test_every_line_has_its_workers_number_and_goes_where_it_was_written() -> None:
    done = _launch(
        "print(f'out {index}'); print(f'err {index}', file=sys.stderr); os.write(1, b'raw'); print(sys.stdin.read() + '|')"
    )
    assert done.returncode == 0
    assert sorted(done.stderr.splitlines()) == [f"[{k}] err {k}" for k in range(3)]
    assert sorted(done.stdout.splitlines()) == sorted(
        line for k in range(3) for line in (f"[{k}] out {k}", f"[{k}] raw|")
    )


def test_more_than_a_pipe_holds_arrives_whole() -> None:
    done = _launch("print('x' * 300_000)", workers=2)
    assert sorted(done.stdout.splitlines()) == [f"[{k}] {'x' * 300_000}" for k in range(2)]


def test_no_bytes_of_a_worker_end_the_launcher() -> None:
    done = _launch(r"os.write(1, b'\xff\x00\n')", workers=2)
    assert done.returncode == 0 and done.stdout.count("\ufffd") == 2


@pytest.mark.parametrize(
    ("work", "code", "said"),
    [
        ("raise ValueError('boom')", 143, "[0] ValueError: boom"),
        ("os._exit(2)", 2, "left with code 2"),
        ("os.kill(os.getpid(), 9)", 143, "was ended by SIGKILL"),
        ("sys.exit(3)", 143, "[0] SystemExit: 3"),
    ],
)
def test_the_end_of_a_worker_is_told(work: str, code: int, said: str) -> None:
    done = _launch(work, workers=2)
    assert done.returncode == code and said.replace("[0]", "") in done.stderr, done.stderr


def test_workers_that_cannot_be_started_are_refused_on_one_line() -> None:
    done = _launch("import time; time.sleep(60)", 8, "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("error: Cannot start worker ")
    assert "Too many open files; use fewer workers" in done.stderr
