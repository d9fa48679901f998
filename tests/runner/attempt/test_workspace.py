"""The folder from outside: nothing that a model plants leads a write or a read elsewhere."""

import os
from pathlib import Path

import pytest

from runner.attempt.workspace import PathRefusedError, Workspace


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("untouched")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "inside"
    folder.mkdir()
    return Workspace(folder)


def test_a_file_is_written_whole_in_folders_made_on_the_way(workspace: Workspace) -> None:
    assert workspace.write("notes/deep/a.txt", "ü") == 2
    assert (workspace.folder / "notes/deep/a.txt").read_text(encoding="utf-8") == "ü"
    workspace.write("notes/deep/a.txt", "b")
    assert os.listdir(workspace.folder / "notes/deep") == ["a.txt"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "/etc/passwd",
        "../outside/secret",
        "a/../../outside/secret",
        "a/..",
        "folder/",
        "a\x00b",
        "a\nb",
        "x" * 300,
    ],
)
def test_a_path_that_is_no_file_inside_is_refused(
    workspace: Workspace, outside: Path, path: str
) -> None:
    with pytest.raises(PathRefusedError):
        workspace.write(path, "gotcha")
    assert (outside / "secret").read_text() == "untouched"


def test_a_link_in_place_of_the_file_is_replaced_not_followed(
    workspace: Workspace, outside: Path
) -> None:
    (workspace.folder / "kernel.py").symlink_to(outside / "secret")
    workspace.write("kernel.py", "mine")
    assert (outside / "secret").read_text() == "untouched"
    assert not (workspace.folder / "kernel.py").is_symlink()


def test_a_hard_link_in_place_of_the_file_is_replaced_not_written_through(
    workspace: Workspace, outside: Path
) -> None:
    os.link(outside / "secret", workspace.folder / "kernel.py")
    workspace.write("kernel.py", "mine")
    assert (outside / "secret").read_text() == "untouched"


def test_a_linked_folder_on_the_way_is_refused(workspace: Workspace, outside: Path) -> None:
    (workspace.folder / "notes").symlink_to(outside)
    with pytest.raises(PathRefusedError, match="link"):
        workspace.write("notes/secret", "gotcha")
    assert sorted(os.listdir(outside)) == ["secret"]


def test_a_folder_in_place_of_the_file_is_refused_and_leaves_no_rest(workspace: Workspace) -> None:
    (workspace.folder / "kernel.py").mkdir()
    with pytest.raises(PathRefusedError, match="folder"):
        workspace.write("kernel.py", "mine")
    assert os.listdir(workspace.folder) == ["kernel.py"]


def test_a_file_in_place_of_a_folder_is_refused(workspace: Workspace) -> None:
    workspace.write("notes", "a file")
    with pytest.raises(PathRefusedError, match="folder"):
        workspace.write("notes/a.txt", "b")


def test_text_with_half_a_surrogate_pair_is_written_as_a_question_mark(
    workspace: Workspace,
) -> None:
    workspace.write("a.txt", "x\ud800")
    assert (workspace.folder / "a.txt").read_bytes() == b"x?"


def test_a_file_is_read_up_to_its_limit(workspace: Workspace) -> None:
    workspace.write("SKILL.md", "x" * 10)
    assert workspace.read("SKILL.md", limit_bytes=10).text == "x" * 10
    found = workspace.read("SKILL.md", limit_bytes=9)
    assert (found.text, found.fault) == (None, "SKILL.md is larger than 9 bytes")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\x00b"])
def test_what_is_no_text_is_not_read(workspace: Workspace, content: bytes) -> None:
    (workspace.folder / "kernel.py").write_bytes(content)
    assert workspace.read("kernel.py", limit_bytes=10).text is None


def test_a_missing_file_is_named(workspace: Workspace) -> None:
    assert workspace.read("kernel.py", limit_bytes=10).fault == "there is no kernel.py"


def test_a_link_a_pipe_and_a_folder_are_not_read(workspace: Workspace, outside: Path) -> None:
    (workspace.folder / "link").symlink_to(outside / "secret")
    os.mkfifo(workspace.folder / "pipe")
    (workspace.folder / "folder").mkdir()
    for name in ("link", "pipe", "folder"):
        found = workspace.read(name, limit_bytes=10)
        assert found.text is None
        assert "no regular file" in found.fault
