"""Which times count: medians of draws on one core, the child's clock held to the parent's."""

import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runner.grader import limits
from runner.grader.session import Returned

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Overhead:
    """What a call costs beside solve, from null calls of the same shapes: medians, in ns.

    `slack_ns` is by how much two clocks may differ beyond CLOCK_RATIO.
    """

    wall_ns: float
    cpu_ns: float | None
    slack_ns: float


@dataclass(frozen=True)
class KernelTimes:
    """The draws that count, in ms and in the order drawn, and what was remarked about them."""

    draws_ms: tuple[float, ...]
    findings: tuple[str, ...]

    @property
    def median_ms(self) -> float:
        """The kernel's time."""
        return statistics.median(self.draws_ms)


def calibrate(calls: Sequence[Returned]) -> Overhead:
    """Return what the null calls cost beyond what the child says they took."""
    walls = [float(call.wall_ns - call.claimed_ns) for call in calls]
    cpus = [call.cpu_ns - call.claimed_ns for call in calls if call.cpu_ns is not None]
    quarter, _, three_quarters = statistics.quantiles(walls, n=4)
    return Overhead(
        wall_ns=statistics.median(walls),
        cpu_ns=statistics.median(cpus) if len(cpus) == len(calls) else None,
        slack_ns=2 * (three_quarters - quarter) + limits.CLOCK_FLOOR_NS,
    )


def kernel_times(calls: Sequence[Returned], overhead: Overhead, *, device: str) -> KernelTimes:
    """Return the times that count for the timed calls.

    The child's claim counts while the parent's wall clock, less the overhead, agrees: the slower
    median is at most CLOCK_RATIO times the faster plus the slack. Otherwise the slower clock
    counts. On `cpu` the processor time of all threads is a third clock, for work that was spread
    over cores that eager does not have.
    """
    clocks: dict[str, list[float]] = {
        "the child claims": [call.claimed_ns for call in calls],
        "the parent's clock says": [call.wall_ns - overhead.wall_ns for call in calls],
    }
    cpu_ns = [call.cpu_ns for call in calls if call.cpu_ns is not None]
    if device == "cpu" and overhead.cpu_ns is not None and len(cpu_ns) == len(calls):
        clocks["the processor time is"] = [spent - overhead.cpu_ns for spent in cpu_ns]
    claimed_ns = statistics.median(clocks["the child claims"])
    findings = []
    counted, counted_ns = "the child claims", claimed_ns
    for name, draws in list(clocks.items())[1:]:
        median_ns = statistics.median(draws)
        # Processor time below the wall clock is a wait, not a contradiction.
        is_wait = name == "the processor time is" and median_ns < claimed_ns
        if is_wait or _agree(median_ns, claimed_ns, overhead.slack_ns):
            continue
        findings.append(
            f"two clocks disagree: the child claims {claimed_ns / _NS_PER_MS:.4f} ms a call,"
            f" {name} {median_ns / _NS_PER_MS:.4f} ms; the slower counts"
        )
        if median_ns > counted_ns:
            counted, counted_ns = name, median_ns
    draws_ms = tuple(max(float(draw), 1.0) / _NS_PER_MS for draw in clocks[counted])
    return KernelTimes(draws_ms, tuple(findings))


def _agree(median_ns: float, claimed_ns: float, slack_ns: float) -> bool:
    slower, faster = max(median_ns, claimed_ns), min(median_ns, claimed_ns)
    return slower <= max(faster, 0.0) * limits.CLOCK_RATIO + slack_ns


def idle_ticks() -> dict[int, int]:
    """Return each core's idle time so far, in the kernel's ticks; empty where it tells none."""
    ticks = {}
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name.startswith("cpu") and name != "cpu":
                ticks[int(name.removeprefix("cpu"))] = int(fields[3])
    return ticks


def idlest_core(before: dict[int, int]) -> int:
    """Return the allowed core that was idle longest since `before`."""
    now = idle_ticks()
    cores = sorted(os.sched_getaffinity(0))
    return max(cores, key=lambda core: now.get(core, 0) - before.get(core, 0))


@contextmanager
def pinned(child: int | None, core: int, *, device: str) -> Iterator[None]:
    """On `cpu`, keep this thread and all of the child's on one core; elsewhere do nothing."""
    if device != "cpu":
        yield
        return
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
        _move(child, {core})
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        _move(child, allowed)


def _move(process: int | None, cores: set[int]) -> None:
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(task.name), cores)
