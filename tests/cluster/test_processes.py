from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import json, os, resource, sys, time
from qflock.cluster.launcher import Launch, launch
from qflock.errors import QflockError

def work():
    index = json.loads(os.environ.get("TF_CONFIG", '{{"task": {{"index": 0}}}}'))["task"]["index"]
    {work}
    return 0

{before}
try:
    code = launch(Launch(work, {workers}, restarts={restarts}))
except QflockError as error:
    code = f"error: {{error}}"
print("launched", file=sys.stderr)
sys.exit(code)
"""


def _program(work: str, workers: int = 3, before: str = "", restarts: int = 0) -> list[str]:
    return [
        sys.executable, "-c", PROGRAM.format(work=work, workers=workers, before=before, restarts=restarts)
    ]  # fmt: skip


def _launch(
    work: str, workers: int = 3, before: str = "", restarts: int = 0
) -> subprocess.CompletedProcess[str]:
    program = _program(work, workers, before, restarts)
    return subprocess.run(program, input="nobody reads this", capture_output=True, text=True, timeout=60)


def test_every_line_has_its_workers_number_and_goes_where_it_was_written() -> None:
    done = _launch(
        "print(f'out {index}'); print(f'err {index}', file=sys.stderr); os.write(1, b'raw'); print(sys.stdin.read() + '|')"
    )
    assert done.returncode == 0
    assert sorted(done.stderr.splitlines()) == [*(f"[{k}] err {k}" for k in range(3)), "launched"]
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
        ("raise ValueError('boom')", 143, "] ValueError: boom"),
        ("os._exit(2)", 2, "left with code 2"),
        ("os.kill(os.getpid(), 9)", 143, "was ended by SIGKILL"),
        ("sys.exit(3)", 143, "left with code 3"),
        ("sys.exit(2)", 2, "left with code 2"),
        ("sys.exit('no more')", 143, "] no more"),
        ("return None", 143, "] TypeError"),
    ],
)
def test_the_end_of_a_worker_is_told(work: str, code: int, said: str) -> None:
    done = _launch(work, workers=2)
    assert done.returncode == code and said in done.stderr, done.stderr


def test_a_program_that_leaves_twice_in_the_same_way_is_not_started_again() -> None:
    done = _launch("if index == 1: os._exit(7)\n    time.sleep(60)", workers=2, restarts=5)
    assert done.returncode == 2
    assert "error: worker 1 left with code 7; the same happened before at step 0" in done.stderr


def test_unprintable_text_is_printed_as_python_does() -> None:
    done = _launch("print('r\\udcff', file=sys.stderr)", workers=2)
    assert done.returncode == 0 and "[1] r\\udcff\n" in done.stderr


def test_exit_codes_are_known_where_ended_children_were_not_waited_for() -> None:
    done = _launch("sys.exit(2)", 2, "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    assert done.returncode == 2, done.stderr


def test_what_made_others_leave_is_told_though_they_were_faster() -> None:
    done = _launch("if index == 1: time.sleep(0.3); os.kill(os.getpid(), 9)\n    os._exit(143)")
    assert "worker 1 was ended by SIGKILL" in done.stderr, done.stderr


def test_workers_that_cannot_be_started_are_refused_on_one_line() -> None:
    done = _launch("time.sleep(60)", 8, "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2, done.stderr
    assert done.stderr.startswith("launched\nerror: Cannot start worker ")
    assert "Too many open files; use fewer workers" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_no_worker_lives_on_as_a_launcher_when_nobody_listens(workers: int) -> None:
    command = _program("time.sleep(0.5); print('x' * 100_000)", workers)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read().count("launched") == 1
    process.wait(60)


def test_workers_that_nobody_reads_go_on_to_their_end() -> None:
    chatter = "time.sleep(0.5); [print('x' * 1000) for _ in range(1000)]"
    process = subprocess.Popen(
        _program(chatter, 2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read() == "launched\n" and process.wait(20) == 0


def test_a_temporary_folder_without_room_is_refused() -> None:
    done = _launch(
        "pass", 2, "import shutil; shutil.disk_usage = lambda path: shutil._ntuple_diskusage(1, 1, 4096)"
    )
    assert done.returncode == 1
    assert (
        "error: TMPDIR must have 16" in done.stderr
        and "make room there, or set another TMPDIR" in done.stderr
    )
