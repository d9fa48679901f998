"""Who a sandboxed command is: its user, its rights, its environment."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import sandbox
from runner.sandbox import Level
from runner.sandbox.slots import Slot
from tests.runner.sandbox.conftest import ALL, ISOLATING, LIMITS, pids_of, python_for

STATUS = """
import json
lines = (line.partition(":") for line in open("/proc/self/status"))
print(json.dumps({name: value.strip() for name, _, value in lines}))
"""
ENVIRONMENTS = """
import glob, json, os
found = {}
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        found[path] = open(path, "rb").read().decode()
    except OSError:
        found[path] = ""
print(json.dumps({"own": dict(os.environ), "all": "".join(found.values()), "n": len(found)}))
"""
COMMAND_LINES = """
import glob, json
print(json.dumps([open(path, "rb").read().decode() for path in glob.glob("/proc/[0-9]*/cmdline")]))
"""


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_the_host_sees_a_command_run_as_no_root(level: Level, folder: Path, marker: str) -> None:
    # Inside, a user map could say anything; only the host's own view counts.
    argv = [python_for(level), "-c", "import time; print('up', flush=True); time.sleep(60)", marker]
    with sandbox.start(argv, folder=folder, writable=False, limits=LIMITS) as box:
        assert box.process.stdout is not None
        assert box.process.stdout.readline() == b"up\n"
        innermost = max(pids_of(marker))
        uids = {
            line.split(":")[1]
            for line in Path(f"/proc/{innermost}/status").read_text().splitlines()
            if line.startswith("Uid:")
        }
        wanted = box.uid if os.geteuid() == 0 else os.getuid()
        assert uids == {f"\t{wanted}" * 4}
        assert wanted != 0


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_no_capability_is_left_and_none_can_come_back(answer: Callable[..., Any]) -> None:
    status = answer(STATUS)
    sets = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert {name: int(status[name], 16) for name in sets} == dict.fromkeys(sets, 0)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize("level", [Level.NONE], indirect=True)
def test_even_without_isolation_no_right_is_left(answer: Callable[..., Any]) -> None:
    status = answer(STATUS)
    assert (int(status["CapEff"], 16), status["NoNewPrivs"]) == (0, "1")
    assert status["Groups"].split() == ([] if os.geteuid() == 0 else status["Groups"].split())


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_two_sandboxes_of_root_run_as_two_users(level: Level, folder: Path) -> None:
    argv = [python_for(level), "-c", "import time; time.sleep(60)"]
    with (
        sandbox.start(argv, folder=folder, writable=False, limits=LIMITS) as first,
        sandbox.start(argv, folder=folder, writable=False, limits=LIMITS) as second,
    ):
        assert (first.uid != second.uid) == (os.geteuid() == 0)


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_the_callers_environment_stays_outside(
    answer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", "sk-of-the-worker")
    seen = answer(ENVIRONMENTS, environment={"GIVEN": "1"})
    assert "VENDOR_API_KEY" not in seen["own"]
    assert seen["own"]["GIVEN"] == "1"


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_no_process_inside_shows_the_callers_environment(
    answer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", "sk-of-the-worker")
    seen = answer(ENVIRONMENTS)
    assert seen["n"] == 2  # the first process, and the command itself
    assert "sk-of-the-worker" not in seen["all"]
    assert set(seen["own"]) <= {
        *("HOME", "LANG", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER", "XDG_CACHE_HOME"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE", "LC_CTYPE"),
    }


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_no_command_line_inside_names_the_hosts_folder(
    answer: Callable[..., Any], folder: Path
) -> None:
    lines = answer(COMMAND_LINES)
    assert len(lines) == 2
    assert not any(str(folder) in line for line in lines)


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_a_command_reads_nothing_from_the_callers_input(answer: Callable[..., Any]) -> None:
    assert answer("import json, sys; print(json.dumps(sys.stdin.read()))") == ""


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_a_released_user_is_taken_again(level: Level, folder: Path) -> None:
    argv = [python_for(level), "-c", "pass"]
    uids = []
    for _ in range(2):
        with sandbox.start(argv, folder=folder, writable=False, limits=LIMITS) as box:
            uids.append(box.uid)
            assert box.process.wait(20) == 0
    assert uids[0] == uids[1]


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_a_callers_path_does_not_choose_the_programs_that_take_rights_away(
    level: Level, folder: Path
) -> None:
    # An earlier command left these in its folder, to be found before the system's.
    for name in ("setpriv", "prlimit", "choom", "env", "taskset", "unshare"):
        (folder / name).write_text("#!/bin/sh\necho planted\n")
        (folder / name).chmod(0o755)
    with sandbox.start(["true"], folder=folder, writable=True, limits=LIMITS) as box:
        path = f"{box.folder_inside}:/usr/bin:/bin"
    finished = sandbox.run(
        ["grep", "Max processes", "/proc/self/limits"],
        folder=folder,
        writable=True,
        limits=LIMITS,
        environment={"PATH": path},
        cores=[max(os.sched_getaffinity(0))],
        timeout_sec=20.0,
        output_limit_bytes=1000,
    )
    assert finished.stdout.split()[2:4] == [b"512", b"512"], finished


def test_a_user_with_unreaped_processes_is_not_used_again() -> None:
    first = Slot.take()
    if first is None:  # an ordinary user has but itself
        assert os.geteuid() != 0
        return
    first.release()
    ended = subprocess.Popen(["true"], user=first.uid, group=first.uid, extra_groups=[])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        second = Slot.take()
        assert second is not None
        assert second.uid != first.uid
        second.release()
    finally:
        ended.wait()
