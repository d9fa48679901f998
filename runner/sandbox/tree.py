"""The processes inside a sandbox as the host sees them."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_GONE = (FileNotFoundError, ProcessLookupError)


def children(pid: int) -> list[int]:
    """Return the direct children of a process; none once it is gone."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(*_GONE):
            found += [int(word) for word in task.read_text().split()]
    return found


def descendants(pid: int) -> Iterator[int]:
    """Yield every process below `pid`, parents first.

    Complete for a process-id namespace, whose orphans fall to its first process.
    """
    for child in children(pid):
        yield child
        yield from descendants(child)


def resident_bytes(pid: int) -> int:
    """Return the anonymous and shared memory that a process holds; 0 once it is gone.

    Pages of mapped files are left out, for the kernel can drop them.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except _GONE:
        return 0
    fields = dict(line.split(":", 1) for line in lines)
    sizes = (fields[name] for name in ("RssAnon", "RssShmem") if name in fields)
    return sum(int(size.removesuffix("kB")) for size in sizes) * 1024


def kill_child(pid: int, *, parent: int) -> None:
    """Send SIGKILL to `pid` if it still is a child of `parent`, not to a later bearer of its id."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if pid in children(parent):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
