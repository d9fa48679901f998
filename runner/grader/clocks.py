"""What the system itself says of a call: processor time, and time spent waiting for a core."""

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """The clocks at one moment, in ns; None where the system keeps no such clock.

    `cpu_ns` is the processor time of all the child's threads, `waited_ns` how long this thread and
    the child's main thread have stood in a run queue while something else had the core.
    """

    wall_ns: int
    cpu_ns: int | None
    waited_ns: int | None


class ChildClocks:
    """Reads one child's clocks from outside, where the child cannot reach them."""

    def __init__(self, pid: int | None) -> None:
        # The system's numbering of another process's CPU clock (clock_getcpuclockid(3)).
        self._cpu_clock = None if pid is None else (~pid << 3) | 2
        names = (f"/proc/self/task/{threading.get_native_id()}/schedstat", f"/proc/{pid}/schedstat")
        self._fds: list[int] = []
        with suppress(OSError):
            for name in names:
                self._fds.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC))

    def read(self) -> Reading:
        """Return the clocks as they stand."""
        return Reading(time.perf_counter_ns(), self._cpu_ns(), self._waited_ns())

    def close(self) -> None:
        """Let go of the system's files."""
        while self._fds:
            os.close(self._fds.pop())

    def _cpu_ns(self) -> int | None:
        if self._cpu_clock is None:
            return None
        try:
            return time.clock_gettime_ns(self._cpu_clock)
        except OSError:
            return None

    def _waited_ns(self) -> int | None:
        both = 2
        if len(self._fds) != both:
            return None
        try:
            # Processor time, time waited, number of slices.
            return sum(int(os.pread(fd, 128, 0).split()[1]) for fd in self._fds)
        except (OSError, ValueError, IndexError):
            return None


def difference(before: int | None, after: int | None) -> int | None:
    """Return how much a clock went on; None where it was not known at both ends."""
    return None if before is None or after is None else after - before
