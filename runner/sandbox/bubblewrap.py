"""The command that starts a sandbox by bubblewrap, a setuid-free namespace launcher."""

from collections.abc import Sequence
from pathlib import Path

from runner.sandbox import stages
from runner.sandbox.room import FOLDER_INSIDE, SYSTEM_PATH, TMP_INSIDE, Room
from runner.sandbox.view import Bind, view

_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts")
# setpriv inside needs these three, and gives them up: see `command`.
_RIGHTS_TO_DROP_RIGHTS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
_NOBODY = "65534"


def command(argv: Sequence[str], *, options_fd: int) -> list[str]:
    """Return what to start; the options come through `options_fd`, so that no path shows inside.

    `argv` is what `inner_command` gave.
    """
    return ["bwrap", "--args", str(options_fd), "--", *argv]


def inner_command(argv: Sequence[str], room: Room, *, uid: int | None) -> list[str]:
    """Return `argv` behind the programs that drop rights and set limits inside.

    A user namespace made by root maps its users to root outside, which the kernel would let write
    to host settings. So root makes none: bubblewrap keeps the right to change user, and the first
    program inside changes to `uid` for good. An ordinary user needs no such step.
    """
    drop = stages.drop_rights(uid) if uid is not None else []
    limits = stages.limit(room.limits.rlimits(), cores=room.cores)
    return [*drop, *limits, *stages.enter(FOLDER_INSIDE, room.variables()), *argv]


def options(room: Room, *, uid: int | None, seccomp_fd: int) -> bytes:
    """Return bubblewrap's options, each ended by a zero byte."""
    words = [*_NAMESPACES, "--unshare-cgroup-try", "--hostname", "sandbox"]
    words += ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    if uid is None:
        words += ["--unshare-user", "--uid", _NOBODY, "--gid", _NOBODY]
    else:
        words += [word for right in _RIGHTS_TO_DROP_RIGHTS for word in ("--cap-add", right)]
    words += ["--setenv", "PATH", SYSTEM_PATH, *_mounts(room)]
    words += ["--chdir", "/", "--seccomp", str(seccomp_fd)]
    return b"".join(word.encode() + b"\0" for word in words)


def _mounts(room: Room) -> list[str]:
    shown = view(room)
    size = str(room.limits.tmp_bytes)
    words = ["--proc", "/proc", "--dev", "/dev"]
    for path in (TMP_INSIDE, "/dev/shm"):  # noqa: S108  (tmpfs of the sandbox)
        words += ["--perms", "1777", "--size", size, "--tmpfs", path]
    for target, link in shown.links:
        words += ["--symlink", target, link]
    for bind in shown.binds:
        # Left to itself, bubblewrap makes the folders above a target for its own user alone.
        for parent in reversed(Path(bind.target).parents[:-1]):
            words += ["--perms", "0755", "--dir", str(parent)]
        words += [_flag(bind), bind.source, bind.target]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/"]


def _flag(bind: Bind) -> str:
    if bind.is_device:
        return "--dev-bind"
    return "--bind" if bind.writable else "--ro-bind"
