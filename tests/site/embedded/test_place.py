"""Where `make run` may live, and the one sentence it says when it may not."""

import errno
import os
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from mkb_site.embedded import place as places
from mkb_site.embedded.place import CannotStartError, Place


@pytest.fixture
def taken_port() -> int:
    """A port that another program listens on while the test runs."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_free_port_and_a_new_folder_are_accepted(tmp_path: Path) -> None:
    port = places.free_port(20_000)
    chosen = places.choose(str(port), str(tmp_path / "new" / "folder"))
    assert chosen.url == f"http://127.0.0.1:{port}"
    assert chosen.folder.is_dir()


def test_a_taken_port_is_named_with_the_cure(taken_port: int, tmp_path: Path) -> None:
    with pytest.raises(CannotStartError, match=rf"Port {taken_port} is taken .*`make run PORT="):
        places.choose(str(taken_port), str(tmp_path))


@pytest.mark.parametrize("port", ["", "http", "0", "65536", "-1", "80.5"])
def test_what_is_no_port_is_quoted(port: str, tmp_path: Path) -> None:
    with pytest.raises(CannotStartError, match=r"PORT='.*' is not a port: write a number"):
        places.choose(port, str(tmp_path))


def test_the_next_free_port_skips_a_taken_one(taken_port: int) -> None:
    assert places.free_port(taken_port - 1) > taken_port


def test_there_is_no_port_after_the_last() -> None:
    with pytest.raises(CannotStartError, match="No port above 65535"):
        places.free_port(65_535)


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStartError, match=r"cannot be made \(Not a directory\)"):
        places.choose(str(places.free_port(20_000)), str(tmp_path / "file" / "below"))


def test_too_little_space_is_said_in_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 0, 12_000_000))
    with pytest.raises(CannotStartError, match=r"needs 500 MB free and has 12 MB"):
        places.choose(str(places.free_port(20_000)), str(tmp_path))


def test_a_full_disk_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CannotStartError, match="The disk is full"):
        places.choose(str(places.free_port(20_000)), str(tmp_path / "new"))


def test_a_folder_has_one_holder_at_a_time(tmp_path: Path) -> None:
    here = Place(8_000, tmp_path)
    refused = pytest.raises(CannotStartError, match="Another `make run`")
    with places.held(here), refused, places.held(here):
        pass
    with places.held(here):
        pass
