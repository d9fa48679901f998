"""Nothing that was started inside outlives its sandbox."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner import sandbox
from runner.sandbox import Finished, Level
from tests.runner.sandbox.conftest import ALL, ISOLATING, LIMITS, pids_of, python_for, wait_until

LEAVE_A_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("up", flush=True)
        time.sleep(120)
    os._exit(0)
os.wait()
time.sleep(float(sys.argv[1]))
"""
START_AND_WAIT = """
import sys, time
from pathlib import Path
from runner import sandbox
box = sandbox.start(
    sys.argv[2:], folder=Path(sys.argv[1]), writable=False,
    limits=sandbox.Limits(memory_bytes=1 << 28),
)
print(box.process.stdout.readline(), flush=True)
time.sleep(120)
"""


def _finds_daemons(level: Level) -> bool:
    return level.isolates or os.geteuid() == 0


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_a_daemon_dies_with_the_command_that_left_it(
    level: Level, inside: Callable[..., Finished], marker: str
) -> None:
    finished = inside(LEAVE_A_DAEMON, "0", marker)
    assert finished.stdout == b"up\n"
    assert (pids_of(marker) == []) == _finds_daemons(level)


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_kill_ends_a_command_and_its_daemon(level: Level, folder: Path, marker: str) -> None:
    argv = [python_for(level), "-I", "-c", LEAVE_A_DAEMON, "120", marker]
    with sandbox.start(argv, folder=folder, writable=False, limits=LIMITS) as box:
        assert box.process.stdout is not None
        assert box.process.stdout.readline() == b"up\n"
        assert len(pids_of(marker)) >= 2
        box.kill()
        assert (pids_of(marker) == []) == _finds_daemons(level)
        box.kill()


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_killing_the_launcher_ends_all_inside(level: Level, folder: Path, marker: str) -> None:
    argv = [python_for(level), "-I", "-c", LEAVE_A_DAEMON, "120", marker]
    with sandbox.start(argv, folder=folder, writable=False, limits=LIMITS) as box:
        assert box.process.stdout is not None
        assert box.process.stdout.readline() == b"up\n"
        os.kill(box.process.pid, signal.SIGKILL)
        wait_until(lambda: pids_of(marker) == [], what="the end of all inside")


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_killing_the_worker_ends_its_sandbox(level: Level, folder: Path, marker: str) -> None:
    inner = [python_for(level), "-I", "-c", LEAVE_A_DAEMON, "120", marker]
    worker = subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT, str(folder), *inner],
        stdout=subprocess.PIPE,
        cwd=Path(sandbox.__file__).parents[2],
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"b'up\\n'\n"
        worker.kill()
        worker.wait()
        wait_until(lambda: pids_of(marker) == [], what="the end of all inside")
