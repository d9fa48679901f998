"""A sandbox per level to try things in, and a look at its processes from the host."""

import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner import sandbox
from runner.sandbox import Finished, Level, Limits

ALL = list(Level)
ISOLATING = [level for level in Level if level.isolates]
LIMITS = Limits(memory_bytes=256 << 20)


@pytest.fixture
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Level:
    """Force the level of the parameter; a host that lacks it fails the test in plain words."""
    wanted: Level = request.param
    monkeypatch.setenv("MKB_SANDBOX", wanted)
    return wanted


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's own: its parents are closed to the user that root drops to.
    with tempfile.TemporaryDirectory(prefix="folder-") as name:
        yield Path(name)


@pytest.fixture
def marker() -> str:
    """A word to put on a command line, by which its process can be found on the host."""
    return f"marker-{uuid.uuid4()}"


@pytest.fixture
def inside(level: Level, folder: Path) -> Callable[..., Finished]:
    """Run Python code in a sandbox; keywords go to `sandbox.run`."""

    def run(code: str, *arguments: str, **wishes: Any) -> Finished:
        usual: dict[str, Any] = {"folder": folder, "writable": True, "limits": LIMITS}
        usual |= {"timeout_sec": 30.0, "output_limit_bytes": 1 << 16}
        argv = [python_for(level), "-I", "-c", code, *arguments]
        return sandbox.run(argv, **usual | wishes)

    return run


@pytest.fixture
def answer(inside: Callable[..., Finished]) -> Callable[..., Any]:
    """As `inside`, for code that prints JSON."""

    def ask(code: str, *arguments: str, **wishes: Any) -> Any:
        finished = inside(code, *arguments, **wishes)
        assert finished.returncode == 0, finished.stderr.decode()
        return json.loads(finished.stdout)

    return ask


def python_for(level: Level) -> str:
    """Return this interpreter, or where its folder is closed to the sandbox's user the system's."""
    if level.isolates or os.geteuid() != 0:
        return sys.executable
    return open_python()


def open_python() -> str:
    """Return an interpreter that every user of the host may run."""
    closed = [door for door in Path(sys.executable).resolve().parents if not opens(door)]
    return "/usr/bin/python3" if closed else sys.executable


def opens(door: Path) -> bool:
    return door.stat().st_mode & 0o001 != 0


def pids_of(marker: str) -> list[int]:
    """Return the host's processes whose command line ends with `marker`; zombies have none."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words:
            found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], *, what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
