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

    `slack_ns` is by how much the parent's clocks may be slower beyond CLOCK_RATIO.
    """

    wall_ns: float
    cpu_ns: float | None
    slack_ns: float


@dataclass(frozen=True)
class KernelTimes:
    """The draws that count, in ms and in the order drawn, and what was remarked about them."""

    draws_ms: tuple[float, ...]
    findings: tuple[str, ...]


def calibrate(calls: Sequence[Returned], *, device: str) -> Overhead:
    """Return what the null calls cost beyond what the child says they took."""
    walls = [float(call.wall_ns - call.waited_ns - call.claimed_ns) for call in calls]
    cpus = [float(call.cpu_ns - call.claimed_ns) for call in calls if call.cpu_ns is not None]
    quarter, middle, three_quarters = statistics.quantiles(walls, n=4)
    share = limits.CLOCK_OVERHEAD_SHARE[device] * middle
    return Overhead(
        wall_ns=middle,
        cpu_ns=statistics.median(cpus) if len(cpus) == len(calls) else None,
        slack_ns=2 * (three_quarters - quarter) + share + limits.CLOCK_FLOOR_NS,
    )


def kernel_times(calls: Sequence[Returned], overhead: Overhead, *, device: str) -> KernelTimes:
    """Return the times that count for the timed calls.

    The child's claims count, unless a clock of the parent's says that the calls took longer: its
    median is over CLOCK_RATIO times the claimed one and the slack. Then that clock counts. The
    parent has its wall clock, less the overhead and the time that both sides stood in a run
    queue; and on `cpu` the processor time of all the child's threads, which shows work that was
    spread over cores that eager does not have, or done while the main thread queued.
    """
    claimed_ns = statistics.median(call.claimed_ns for call in calls)
    counted: list[float] = [call.claimed_ns for call in calls]
    slowest_ns = claimed_ns * limits.CLOCK_RATIO + overhead.slack_ns
    findings = []
    for name, draws in _parents_clocks(calls, overhead, device=device).items():
        median_ns = statistics.median(draws)
        if median_ns <= slowest_ns:
            continue
        counted, slowest_ns = draws, median_ns
        findings.append(
            f"two clocks disagree: the child claims {claimed_ns / _NS_PER_MS:.4f} ms a call,"
            f" {name} {median_ns / _NS_PER_MS:.4f} ms; the slower counts"
        )
    # A forged claim may be zero or below; a time is not.
    draws_ms = tuple(max(float(draw), 1.0) / _NS_PER_MS for draw in counted)
    return KernelTimes(draws_ms, tuple(findings))


def _parents_clocks(
    calls: Sequence[Returned], overhead: Overhead, *, device: str
) -> dict[str, list[float]]:
    walls = [call.wall_ns - call.waited_ns - overhead.wall_ns for call in calls]
    clocks = {"the parent's clock says": walls}
    cpus = [call.cpu_ns - (overhead.cpu_ns or 0.0) for call in calls if call.cpu_ns is not None]
    if device == "cpu" and overhead.cpu_ns is not None and len(cpus) == len(calls):
        clocks["the processor time is"] = cpus
    return clocks


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
