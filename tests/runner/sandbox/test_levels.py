"""Which level a host gives, and that each works for root and for ordinary users."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner import sandbox
from runner.sandbox import Level, SandboxUnavailableError, namespaces
from tests.runner.sandbox.conftest import ALL, LIMITS, open_python

SAY_LEVEL = "from runner import sandbox; print(sandbox.level())"
RUN_ONE = """
import json, os, sys, tempfile
from pathlib import Path
from runner import sandbox
with tempfile.TemporaryDirectory() as name:
    code = "import os; open('made', 'w').write('1'); print(os.path.exists('/etc/passwd'))"
    done = sandbox.run(
        [sys.executable, "-I", "-c", code], folder=Path(name), writable=True,
        limits=sandbox.Limits(memory_bytes=1 << 28, n_processes=8),
        timeout_sec=20, output_limit_bytes=1000,
    )
    print(json.dumps({
        "level": sandbox.level(), "uid": os.getuid(), "code": done.returncode,
        "owner": os.stat(os.path.join(name, "made")).st_uid,
        "sees_host": done.stdout.decode().strip(), "errors": done.stderr.decode(),
    }))
"""
TRY_LANDLOCK = """
import sys
sys.path.insert(0, sys.argv[1])
import shim
shim._prctl(shim._PR_SET_NO_NEW_PRIVS, 1)
shim.restrict_files([sys.argv[2]], tmp=sys.argv[2])
open(sys.argv[2] + "/allowed", "w").close()
try:
    open(sys.argv[3] + "/refused", "w").close()
except PermissionError:
    print("refused")
"""


@pytest.fixture
def package() -> Iterator[Path]:
    """The runner's sandbox in a folder that every user may read, as an installed host has it."""
    here = Path(sandbox.__file__).parent
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        shutil.copytree(here, Path(name, "runner", "sandbox"))
        shutil.copy(here.parent / "__init__.py", Path(name, "runner"))
        yield Path(name)


def test_the_best_level_is_taken_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKB_SANDBOX", raising=False)
    assert sandbox.level() is Level.BUBBLEWRAP


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_the_environment_forces_a_level(level: Level) -> None:
    assert sandbox.level() is level


def test_an_unknown_level_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_SANDBOX", "docker")
    with pytest.raises(SandboxUnavailableError, match=r"docker.*bubblewrap, namespaces, none"):
        sandbox.level()


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.NAMESPACES], indirect=True)
def test_where_no_namespace_can_be_made_the_host_says_so(
    level: Level, folder: Path, package: Path
) -> None:
    # A sandbox is such a host: inside it neither level can start.
    def ask(**forced: str) -> sandbox.Finished:
        return sandbox.run(
            [sys.executable, "-c", SAY_LEVEL],
            folder=folder,
            writable=False,
            limits=LIMITS,
            read_only=[package],
            environment={"PYTHONPATH": str(package), **forced},
            timeout_sec=30.0,
            output_limit_bytes=10_000,
        )

    assert ask().stdout.decode() == "none\n"
    refused = ask(MKB_SANDBOX=level)
    assert refused.returncode == 1
    assert f"MKB_SANDBOX={level} does not work on this host: " in refused.stderr.decode()


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_each_level_works_for_an_ordinary_user(level: Level, package: Path) -> None:
    become = ["setpriv", "--reuid=60900", "--regid=60900", "--clear-groups"]
    done = subprocess.run(
        [*(become if os.geteuid() == 0 else []), open_python(), "-B", "-c", RUN_ONE],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(package), "MKB_SANDBOX": level},
        cwd="/",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["errors"] == ""
    assert (seen["level"], seen["code"]) == (level, 0)
    assert seen["owner"] == seen["uid"] != 0
    assert seen["sees_host"] == str(not level.isolates)


def test_an_interpreter_closed_to_the_dropped_user_is_explained(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("MKB_SANDBOX", Level.NONE)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = shutil.copy("/bin/true", str(closed))
    if os.geteuid() == 0:
        with pytest.raises(PermissionError, match="is closed to other users"):
            sandbox.start([program], folder=folder, writable=False, limits=LIMITS)
    else:
        with sandbox.start([program], folder=folder, writable=False, limits=LIMITS) as box:
            assert box.process.wait(20) == 0


def test_landlock_alone_refuses_writes_elsewhere(folder: Path, tmp_path: Path) -> None:
    here = str(namespaces.SHIM.parent)
    done = subprocess.run(
        [sys.executable, "-B", "-c", TRY_LANDLOCK, here, str(folder), str(tmp_path)],
        capture_output=True,
        check=True,
    )
    interface = ctypes.CDLL(None).syscall(444, None, 0, 1)
    assert (done.stdout == b"refused\n") == (interface >= 1)
