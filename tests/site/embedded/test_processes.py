"""Programs that live and die together."""

import os
import sys
import time
from pathlib import Path

import pytest

from mkb_site.embedded.processes import Group, Program, celery

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(600)\n",
]


@pytest.fixture
def group(tmp_path: Path) -> Group:
    """A group that is stopped whatever the test does."""
    made = Group(logs=tmp_path / "logs", environment=dict(os.environ))
    yield made
    made.stop()


def _until(condition, limit_sec: float = 10.0) -> bool:
    deadline = time.monotonic() + limit_sec
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_output_goes_to_the_programs_own_log(group: Group) -> None:
    group.start(Program("one word", [sys.executable, "-c", "print('hello')"]))
    assert _until(lambda: group.dead() == "one word")
    assert group.log_of("one word").name == "one-word.log"
    assert group.log_of("one word").read_text() == "hello\n"


def test_a_living_group_has_no_dead(group: Group) -> None:
    group.start(Program("sleeper", SLEEP))
    assert group.dead() is None


def test_stopping_ends_even_what_ignores_a_polite_signal(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mkb_site.embedded.processes.GRACE_SEC", 0.5)
    group.start(Program("stubborn", STUBBORN))
    log = group.log_of("stubborn")
    assert _until(lambda: log.read_text().strip().isdecimal())
    grandchild = int(log.read_text())
    assert _is_alive(grandchild)
    group.stop()
    assert _until(lambda: not _is_alive(grandchild))


def test_programs_die_with_a_launcher_that_is_killed_outright(tmp_path: Path) -> None:
    launcher = (
        "import os, sys; from pathlib import Path\n"
        "from mkb_site.embedded.processes import Group, Program\n"
        f"group = Group(logs=Path({str(tmp_path)!r}), environment=dict(os.environ))\n"
        "show = 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'\n"
        "group.start(Program('orphan', [sys.executable, '-c', show]))\n"
        "log = group.log_of('orphan')\n"
        "while not log.read_text().strip(): pass\n"
        "os.kill(os.getpid(), 9)\n"
    )
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", launcher])
    orphan = int((tmp_path / "orphan.log").read_text())
    assert _until(lambda: not _is_alive(orphan))


def test_a_workers_command_names_its_app_queue_and_pool() -> None:
    command = celery("runner.worker", "agent", "--pool", "threads")
    assert command[1:8] == ["-m", "celery", "-A", "runner.worker", "worker", "-Q", "agent"]
    assert command[-2:] == ["--pool", "threads"]
