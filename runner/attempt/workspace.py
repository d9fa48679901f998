"""The attempt's folder seen from outside its sandbox: no link that the model plants is followed.

Commands in the sandbox may turn any path into a link or a pipe at any moment, so each step of a
path is opened by itself, relative to the last, and links are refused by the kernel.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_LIMIT = 200


class PathRefusedError(Exception):
    """A path that the model may not write to; the message is for the model."""


@dataclass(frozen=True)
class Found:
    """A file that was looked for: its text, or the reason why there is none to use."""

    text: str | None
    fault: str = ""


@dataclass(frozen=True)
class Workspace:
    """The folder, which must exist."""

    folder: Path

    def fill(self, files: Mapping[str, str]) -> None:
        """Write the files that the attempt starts with."""
        for path, text in files.items():
            self.write(path, text)

    def write(self, path: str, text: str) -> int:
        """Write one file, whole and at once, and return its size in bytes.

        Raises:
            PathRefusedError: the path leads outside, goes through a link, or cannot be written.
        """
        *parents, name = _parts(path)
        content = text.encode("utf-8", "replace")
        try:
            with self._opened(parents) as folder_fd:
                _replace(name, content, folder_fd)
        except OSError as error:
            raise PathRefusedError(
                f"{path!r} cannot be written ({error.strerror}): a part of it is a link, a file"
                " where a folder is needed, or a folder where a file is"
            ) from error
        return len(content)

    def read(self, name: str, *, limit_bytes: int) -> Found:
        """Return the text of a file at the top of the folder."""
        try:
            fd = os.open(self.folder / name, _READ_FLAGS)
        except FileNotFoundError:
            return Found(None, f"there is no {name}")
        except OSError as error:
            return Found(None, f"{name} is no regular file ({error.strerror})")
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return Found(None, f"{name} is no regular file")
        with open(fd, "rb") as file:
            content = file.read(limit_bytes + 1)
        return _decoded(name, content, limit_bytes=limit_bytes)

    @contextlib.contextmanager
    def _opened(self, parents: list[str]) -> Iterator[int]:
        """Open the innermost of some nested folders, making what is missing."""
        fd = os.open(self.folder, _FOLDER_FLAGS)
        try:
            for name in parents:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=fd)
                inner = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd
        finally:
            os.close(fd)


def _parts(path: str) -> list[str]:
    """Split a relative path into names that stay inside.

    Raises:
        PathRefusedError: it is absolute, climbs out, names no file, or is too long or strange.
    """
    if not path or len(path) > _PATH_LIMIT or any(ord(letter) < 32 for letter in path):
        raise PathRefusedError(
            f"path {path[:60]!r} is empty, longer than {_PATH_LIMIT}, or unprintable"
        )
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.name or path.endswith("/"):
        raise PathRefusedError(
            f"{path!r} does not name a file inside the folder; write a relative path"
        )
    return list(pure.parts)


def _decoded(name: str, content: bytes, *, limit_bytes: int) -> Found:
    if len(content) > limit_bytes:
        return Found(None, f"{name} is larger than {limit_bytes:,} bytes")
    if b"\x00" in content:
        return Found(None, f"{name} holds a NUL character")
    try:
        return Found(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Found(None, f"{name} is not UTF-8 (byte {error.start})")


def _replace(name: str, content: bytes, folder_fd: int) -> None:
    # A new file renamed over the old one: it never writes through a link, and never half a file.
    fresh = f".{secrets.token_hex(8)}.tmp"
    fd = os.open(fresh, _WRITE_FLAGS, 0o644, dir_fd=folder_fd)
    try:
        with open(fd, "wb") as file:
            file.write(content)
        os.replace(fresh, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=folder_fd)
        raise
