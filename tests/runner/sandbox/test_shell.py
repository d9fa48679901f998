"""`run`: one command to its end, under a clock, with bounded output."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runner import sandbox
from runner.sandbox import Finished, Level
from tests.runner.sandbox.conftest import ALL, LIMITS, pids_of

pytestmark = pytest.mark.parametrize("level", ALL, indirect=True)


def test_code_and_both_streams_come_back_as_bytes(inside: Callable[..., Finished]) -> None:
    code = """
import sys
sys.stdout.buffer.write(bytes(range(256)))
sys.stderr.write("why")
sys.exit(3)
"""
    assert inside(code) == Finished(
        returncode=3,
        stdout=bytes(range(256)),
        stderr=b"why",
        timed_out=False,
        n_dropped_bytes=0,
    )


def test_a_command_that_is_too_slow_is_killed(inside: Callable[..., Finished], marker: str) -> None:
    code = "import time; print('before', flush=True); time.sleep(60); print('after')"
    finished = inside(code, marker, timeout_sec=1.0)
    assert (finished.timed_out, finished.returncode) == (True, None)
    assert finished.stdout in {b"before\n", b""}
    assert pids_of(marker) == []


def test_long_output_keeps_its_beginning_and_end(inside: Callable[..., Finished]) -> None:
    code = "import sys; sys.stdout.write('a' * 500_000 + 'z' * 500_000); sys.stderr.write('e' * 20)"
    finished = inside(code, output_limit_bytes=1000)
    # 1,000,000 bytes written, 1,000 kept: 500 of the first and 500 of the last.
    assert finished.n_dropped_bytes == 999_000
    assert finished.stdout == b"a" * 500 + b"\n[999000 bytes left out]\n" + b"z" * 500
    assert finished.stderr == b"e" * 20


@pytest.mark.parametrize("n_bytes", [9, 10])
def test_output_that_just_fits_is_whole(inside: Callable[..., Finished], n_bytes: int) -> None:
    text = "0123456789"[:n_bytes]
    finished = inside(f"print({text!r}, end='')", output_limit_bytes=10)
    assert (finished.stdout, finished.n_dropped_bytes) == (text.encode(), 0)


def test_a_command_killed_by_a_signal_says_which(inside: Callable[..., Finished]) -> None:
    # 128 + SIGTERM, which is 15.
    assert inside("import os; os.kill(os.getpid(), 15)").returncode == 143


def test_a_shell_works_in_the_folder(level: Level, folder: Path) -> None:
    (folder / "kernel.py").write_text("x = 1\n")
    finished = sandbox.run(
        ["bash", "-c", "ls; yes | head -1; sleep 100 & echo $HOME > made; cat made; exit 7"],
        folder=folder,
        writable=True,
        limits=LIMITS,
        timeout_sec=20.0,
        output_limit_bytes=1000,
    )
    assert finished.returncode == 7
    lines = finished.stdout.decode().splitlines()
    assert lines[:2] == ["kernel.py", "y"]
    assert finished.stderr == b""
    assert (folder / "made").read_text().strip() == lines[2]


def test_a_program_that_is_not_there_is_an_ordinary_failure(folder: Path, level: Level) -> None:
    finished = sandbox.run(
        ["no-such-program"],
        folder=folder,
        writable=True,
        limits=LIMITS,
        timeout_sec=20.0,
        output_limit_bytes=1000,
    )
    assert finished.returncode == 127
    assert b"no-such-program" in finished.stderr
