"""Start a command in a sandbox of a given level."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.sandbox import bubblewrap, namespaces, seccomp, stages
from runner.sandbox.room import SYSTEM_PATH, Level, Room
from runner.sandbox.sandboxed import Sandboxed
from runner.sandbox.slots import Slot, hand_over


@dataclass(frozen=True)
class _Start:
    """What to execute on the host, and the descriptors that it reads its orders from."""

    command: list[str]
    fds: tuple[int, ...] = ()


def launch(argv: Sequence[str], room: Room, *, level: Level) -> Sandboxed:
    """Start `argv` in `room` at `level`; for the arguments see `runner.sandbox.start`."""
    with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as fds:
        slot = Slot.take()
        if slot is not None:
            on_failure.callback(slot.release)
            hand_over(room.folder, uid=slot.uid, writable=room.writable)
        uid = slot.uid if slot else None
        scratch = None
        if level is Level.BUBBLEWRAP:
            start = _bubblewrapped(argv, room, uid=uid, fds=fds)
        elif level is Level.NAMESPACES:
            start = _namespaced(argv, room, uid=uid, fds=fds)
        else:
            scratch = _scratch(uid)
            on_failure.callback(shutil.rmtree, scratch, ignore_errors=True)
            start = _bare(argv, room, uid=uid, scratch=scratch)
        process = subprocess.Popen(
            start.command,
            env={"PATH": SYSTEM_PATH},
            cwd="/",
            pass_fds=(*room.pass_fds, *start.fds),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        on_failure.pop_all()
    return Sandboxed(process, room, level=level, slot=slot, scratch=scratch)


def _bubblewrapped(
    argv: Sequence[str], room: Room, *, uid: int | None, fds: contextlib.ExitStack
) -> _Start:
    filter_fd = _kept(seccomp.program(), fds)
    options = bubblewrap.options(room, uid=uid, seccomp_fd=filter_fd)
    options_fd = _kept(options, fds)
    inner = bubblewrap.inner_command(argv, room, uid=uid)
    return _Start(
        command=bubblewrap.command(inner, options_fd=options_fd),
        fds=(filter_fd, options_fd),
    )


def _namespaced(
    argv: Sequence[str], room: Room, *, uid: int | None, fds: contextlib.ExitStack
) -> _Start:
    filter_fd = _kept(seccomp.program(), fds)
    order_fd = _kept(namespaces.order(argv, room, uid=uid, seccomp_fd=filter_fd), fds)
    return _Start(
        command=namespaces.command(order_fd=order_fd, uid=uid),
        fds=(filter_fd, order_fd),
    )


def _bare(argv: Sequence[str], room: Room, *, uid: int | None, scratch: Path) -> _Start:
    if uid is not None:
        _refuse_closed_door(Path(argv[0]), uid=uid)
    command = [
        *stages.drop_rights(uid, die_with_parent=True),
        *stages.limit(room.limits.rlimits(), cores=room.cores),
        *stages.enter(str(room.folder.resolve()), room.variables(tmp=str(scratch))),
    ]
    return _Start([*command, *argv])


def _scratch(uid: int | None) -> Path:
    scratch = Path(tempfile.mkdtemp(prefix="sandbox-"))
    if uid is not None:
        os.chown(scratch, uid, uid)
    return scratch


def _refuse_closed_door(program: Path, *, uid: int) -> None:
    """Explain beforehand what would show as a bare "permission denied" inside."""
    for door in program.resolve().parents if program.is_absolute() else ():
        if not door.stat().st_mode & 0o001:
            raise PermissionError(
                f"uid {uid} cannot run {program}: {door} is closed to other users; install it in a"
                " folder open to all, or use a level that isolates"
            )


def _kept(content: bytes, fds: contextlib.ExitStack) -> int:
    """Return a descriptor that reads `content` once and lives until the sandbox has started."""
    fd = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    fds.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
