"""Where the embedded default lives: its port and data folder, checked before anything starts."""

import errno
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NEEDED_BYTES = 500_000_000
LAST_PORT = 65_535


class CannotStartError(Exception):
    """A sentence for the person who typed the command: what is wrong and what to do."""


@dataclass(frozen=True)
class Place:
    """A port of the loopback address, and the folder of database, artefacts and broker."""

    port: int
    folder: Path

    @property
    def url(self) -> str:
        """The board's address."""
        return f"http://127.0.0.1:{self.port}"


def choose(port: str, folder: str) -> Place:
    """Return the place that PORT and MKB_DATA name.

    Raises:
        CannotStartError: no such port, or it is taken; the folder cannot be written, or is full.
    """
    if not port.isdecimal() or not 1 <= int(port) <= LAST_PORT:
        raise CannotStartError(
            f"PORT={port!r} is not a port: write a number from 1 to {LAST_PORT}, as in"
            " `make run PORT=8001`."
        )
    if not is_free(int(port)):
        raise CannotStartError(
            f"Port {port} is taken by another program: stop it, or choose another port, as in"
            f" `make run PORT={min(int(port) + 1, LAST_PORT)}`."
        )
    return Place(int(port), _usable(Path(folder).resolve()))


def is_free(port: int) -> bool:
    """Say whether a server could listen on this port of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(after: int) -> int:
    """Return the first free port above `after`.

    Raises:
        CannotStartError: there is none.
    """
    for port in range(after + 1, LAST_PORT + 1):
        if is_free(port):
            return port
    raise CannotStartError(f"No port above {after} is free: choose a lower one with PORT=.")


@contextmanager
def held(place: Place) -> Iterator[None]:
    """Hold the data folder for this process alone.

    Raises:
        CannotStartError: another `make run` holds it.
    """
    with (place.folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotStartError(
                f"Another `make run` uses the data folder {place.folder}: stop it, or choose"
                " another folder, as in `make run MKB_DATA=/some/folder`."
            ) from error
        yield


def _usable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStartError(_sentence(folder, error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CannotStartError(
            f"The data folder {folder} cannot be written by this account: choose another, as in"
            " `make run MKB_DATA=/some/folder`."
        )
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < NEEDED_BYTES:
        raise CannotStartError(
            f"The disk is too full: {folder} needs {NEEDED_BYTES // 1_000_000} MB free and has"
            f" {free_bytes // 1_000_000} MB; free some space, or choose another folder with"
            " MKB_DATA=."
        )
    return folder


def _sentence(folder: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"The disk is full: {folder} cannot be made; free some space and try again."
    return (
        f"The data folder {folder} cannot be made ({error.strerror}): choose another, as in"
        " `make run MKB_DATA=/some/folder`."
    )
