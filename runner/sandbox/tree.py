"""The processes inside a sandbox as the host sees them."""

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Iterator
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


def held_bytes(pids: Iterable[int]) -> int:
    """Return the anonymous and shared memory that processes hold together, gone ones at nothing.

    Memory files count once even where nobody maps them; pages of files on disk do not count, for
    the kernel can drop those.
    """
    anonymous = shared = 0
    in_files: dict[int, int] = {}
    for pid in pids:
        fields = _status(pid)
        anonymous += fields.get("RssAnon", 0)
        shared += fields.get("RssShmem", 0)
        in_files |= _memory_files(pid)
    # What is mapped from memory files shows in both, hence the larger and not the sum.
    return anonymous + max(shared, sum(in_files.values()))


def kill_below(pid: int, *, timeout_sec: float) -> None:
    """Kill the children of our own child `pid`, wait till they and their namespaces are gone.

    Where it had any, `pid` is left to reap them and end; else it is killed before it starts some.
    """
    # While stopped it can start no other.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    found = children(pid)
    for child in found:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(child)
            try:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                # The first process of a namespace ends only after all others in it.
                select.select([handle], [], [], timeout_sec)
            finally:
                os.close(handle)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT if found else signal.SIGKILL)


def _status(pid: int) -> dict[str, int]:
    """Return the fields of /proc/PID/status that are sizes, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except _GONE:
        return {}
    fields = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: int(size.removesuffix("kB")) * 1024 for name, _, size in fields}


def _memory_files(pid: int) -> dict[int, int]:
    """Return the bytes of each memory file that a process has open, by inode."""
    found: dict[int, int] = {}
    with contextlib.suppress(*_GONE, PermissionError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(*_GONE):
                if os.readlink(entry.path).startswith("/memfd:"):
                    opened = entry.stat()
                    found[opened.st_ino] = opened.st_blocks * 512
    return found
