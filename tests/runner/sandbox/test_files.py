"""Which files a sandboxed command can read and write."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import sandbox
from runner.sandbox import Finished, Level, Limits
from tests.runner.sandbox.conftest import ISOLATING

pytestmark = pytest.mark.parametrize("level", ISOLATING, indirect=True)

TRY_TO_WRITE = """
import json, sys
def writes(path):
    try:
        with open(path, "ab") as stream:
            stream.write(b"x")
    except OSError:
        return False
    return True
print(json.dumps({path: writes(path) for path in sys.argv[1:]}))
"""
TRY_TO_READ = """
import json, os, sys
def readable(path):
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
    except OSError:
        return False
print(json.dumps({path: readable(path) for path in sys.argv[1:]}))
"""
FILL = """
import errno, json, sys
def fill(path):
    try:
        with open(path, "wb") as stream:
            for _ in range(16):
                stream.write(bytes(1 << 20))
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps([fill(path) for path in sys.argv[1:]]))
"""
CLOSED = ("/x", "/usr/x", "/etc/x", "/dev/x", "/root/x", "/proc/sys/kernel/core_pattern")


@pytest.mark.parametrize("writable", [True, False])
def test_only_scratch_and_a_writable_folder_take_writes(
    answer: Callable[..., Any], folder: Path, writable: bool
) -> None:
    own = {"/sandbox/x": writable, "/tmp/x": True, "/dev/shm/x": True}
    expected = own | dict.fromkeys(CLOSED, False)
    assert answer(TRY_TO_WRITE, *expected, writable=writable) == expected
    assert (folder / "x").exists() == writable


def test_the_checkout_the_host_and_other_folders_are_out_of_sight(
    answer: Callable[..., Any], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    hidden = [
        __file__,
        sandbox.__file__,
        str(secret),
        "/etc/passwd",
        "/etc/shadow",
        "/var",
        "/home",
    ]
    assert answer(TRY_TO_READ, *hidden) == dict.fromkeys(hidden, False)


def test_the_home_of_root_holds_nothing_but_a_way_to_the_interpreter(
    answer: Callable[..., Any],
) -> None:
    names = answer(
        "import json, os; print(json.dumps(os.listdir('/root') if os.path.isdir('/root') else []))"
    )
    on_the_way = {
        part
        for path in (sys.prefix, sys.base_prefix, os.path.realpath(sys.executable))
        for part in Path(path).parts[2:3]
        if Path(path).parts[1] == "root"
    }
    assert set(names) == on_the_way


def test_a_path_shown_read_only_is_read_where_it_is_and_not_written(
    answer: Callable[..., Any], tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "f").write_text("for all")
    paths = [str(shown / "f")]
    assert answer(TRY_TO_READ, *paths, read_only=[shown]) == {paths[0]: True}
    assert answer(TRY_TO_WRITE, *paths, read_only=[shown]) == {paths[0]: False}
    assert (shown / "f").read_text() == "for all"


def test_a_file_of_root_alone_stays_closed_even_when_shown(
    answer: Callable[..., Any], tmp_path: Path
) -> None:
    # The user map of a root-made namespace would open it: the file's owner is root, and so,
    # outside, would be the reader. An ordinary caller's file is the command's own.
    private = tmp_path / "private"
    private.write_text("0600")
    private.chmod(0o600)
    seen = answer(TRY_TO_READ, str(private), read_only=[private])
    assert seen == {str(private): os.geteuid() != 0}


def test_the_interpreter_is_where_it_is_outside(answer: Callable[..., Any]) -> None:
    seen = answer("import json, sys; print(json.dumps([sys.executable, sys.prefix]))")
    assert seen == [sys.executable, sys.prefix]


def test_packages_of_the_interpreter_can_be_imported(inside: Callable[..., Finished]) -> None:
    assert inside("import pytest; print(pytest.__version__)").stdout.decode() == (
        f"{pytest.__version__}\n"
    )


def test_scratch_folders_are_full_at_their_size(answer: Callable[..., Any]) -> None:
    limits = Limits(memory_bytes=256 << 20, tmp_bytes=8 << 20)
    assert answer(FILL, "/tmp/x", "/dev/shm/x", limits=limits) == ["ENOSPC", "ENOSPC"]


def test_a_planted_link_does_not_give_away_what_it_points_to(
    inside: Callable[..., Finished], folder: Path
) -> None:
    with tempfile.TemporaryDirectory() as name:
        target = Path(name, "of-the-host")
        target.write_text("mine")
        (folder / "link").symlink_to(target)
        assert inside("pass").returncode == 0
        assert target.stat().st_uid == os.getuid()


def test_what_commands_wrote_is_there_for_the_next_one(
    inside: Callable[..., Finished], folder: Path
) -> None:
    inside("import os; os.mkdir('d', 0o700); open('d/f', 'w').write('1')")
    (folder / "from-outside").write_text("2")
    second = inside("print(open('d/f').read() + open('from-outside', 'r+').read())")
    assert second.stdout == b"12\n"


def test_what_would_hide_the_sandboxs_own_paths_is_refused(level: Level, folder: Path) -> None:
    for path in ("/", "/proc", "/dev"):
        with pytest.raises(ValueError, match="cannot be shown"):
            sandbox.start(
                ["true"],
                folder=folder,
                writable=False,
                limits=Limits(memory_bytes=1 << 30),
                read_only=[Path(path)],
            )
