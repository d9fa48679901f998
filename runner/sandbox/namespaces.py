"""The command that starts a sandbox by util-linux's unshare(1) and `shim.py`."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from runner.sandbox import stages
from runner.sandbox.room import FOLDER_INSIDE, TMP_INSIDE, Room
from runner.sandbox.view import view

SHIM = Path(__file__).with_name("shim.py")

_NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--uts")


def command(*, order_fd: int, uid: int | None) -> list[str]:
    """Return what to start; the shim reads the rest from `order_fd`.

    Root stays root outside of any user namespace until the shim has become `uid`; an ordinary user
    (None) is root of a user namespace, which the shim gives up.
    """
    # The shim forks instead of unshare, which would hold the passed descriptors open till the end.
    words = [*stages.drop_rights(None, die_with_parent=True), "unshare", *_NAMESPACES]
    if uid is None:
        words += ["--user", "--map-root-user"]
    return [*words, "--", sys.executable, "-I", "-S", "-B", str(SHIM), str(order_fd)]


def order(argv: Sequence[str], room: Room, *, uid: int | None, seccomp_fd: int) -> bytes:
    """Return the shim's instructions as JSON."""
    shown = view(room)
    return json.dumps(
        {
            "argv": list(argv),
            "environment": room.variables(),
            "folder": FOLDER_INSIDE,
            "folder_writable": room.writable,
            "tmp": TMP_INSIDE,
            "tmp_bytes": room.limits.tmp_bytes,
            "links": shown.links,
            "binds": [asdict(bind) for bind in shown.binds],
            "uid": uid,
            "rlimits": room.limits.rlimits(),
            "cores": None if room.cores is None else list(room.cores),
            "seccomp_fd": seccomp_fd,
        }
    ).encode()
