"""Only the descriptors that were passed are open inside, and they work both ways."""

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import sandbox
from runner.sandbox import Level
from tests.runner.sandbox.conftest import ALL, LIMITS, python_for

pytestmark = pytest.mark.parametrize("level", ALL, indirect=True)

# Opening the folder itself takes a number, which is gone by the time of the second look.
LIST = """
import json, os
def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
print(json.dumps([fd for fd in range(4096) if is_open(fd)]))
"""
ECHO_THEN_SLEEP = """
import socket, sys, time
with socket.socket(fileno=int(sys.argv[1])) as line:
    line.sendall(line.recv(100).upper())
time.sleep(60)
"""


def test_nothing_but_the_three_streams_leaks(answer: Callable[..., Any]) -> None:
    with tempfile.TemporaryFile() as secret:
        os.set_inheritable(secret.fileno(), True)
        assert answer(LIST) == [0, 1, 2]


def test_a_passed_descriptor_keeps_its_number(answer: Callable[..., Any]) -> None:
    with tempfile.TemporaryFile() as passed:
        assert answer(LIST, pass_fds=[passed.fileno()]) == [0, 1, 2, passed.fileno()]


def test_a_passed_socket_speaks_both_ways_and_tells_its_end(level: Level, folder: Path) -> None:
    ours, theirs = socket.socketpair()
    argv = [python_for(level), "-I", "-c", ECHO_THEN_SLEEP, str(theirs.fileno())]
    with (
        ours,
        sandbox.start(
            argv, folder=folder, writable=False, limits=LIMITS, pass_fds=[theirs.fileno()]
        ) as box,
    ):
        theirs.close()
        ours.settimeout(20)
        ours.sendall(b"question")
        assert ours.recv(100) == b"QUESTION"
        # The child closed its end and lives on: no process of the sandbox holds another copy.
        assert ours.recv(100) == b""
        assert box.process.poll() is None


def test_memory_passed_as_a_file_is_shared(level: Level, folder: Path) -> None:
    fd = os.memfd_create("tensor")
    os.write(fd, b"input ")
    code = "import os, sys; fd = int(sys.argv[1]); os.pwrite(fd, os.pread(fd, 6, 0).upper(), 6)"
    argv = [python_for(level), "-I", "-c", code, str(fd)]
    with sandbox.start(argv, folder=folder, writable=False, limits=LIMITS, pass_fds=[fd]) as box:
        assert box.process.wait(20) == 0
    assert os.pread(fd, 12, 0) == b"input INPUT "
    os.close(fd)
