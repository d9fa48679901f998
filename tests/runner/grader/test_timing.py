"""Which of the clocks count."""

import os
import time

import pytest

from runner.grader import limits, timing
from runner.grader.clocks import ChildClocks, difference
from runner.grader.session import Returned

MS = 1_000_000


def call(claimed: int, wall: int, *, cpu: int | None = None, waited: int = 0) -> Returned:
    return Returned(
        claimed_ns=claimed,
        wall_ns=wall,
        cpu_ns=cpu,
        waited_ns=waited,
        form={},
        written=True,
        seen=(),
    )


OVERHEAD = timing.Overhead(wall_ns=0.4 * MS, cpu_ns=0.3 * MS, slack_ns=0.1 * MS)


def times(*calls: Returned, device: str = "cpu") -> timing.KernelTimes:
    return timing.kernel_times(calls, OVERHEAD, device=device)


def test_overhead_is_what_null_calls_take_beyond_their_claim() -> None:
    # Walls less claims and waits: 300, 400, 500, 400 us. Quartiles (exclusive) 325, 400, 475.
    walls = [400, 500, 600, 700]
    waits = [0, 0, 0, 200]
    calls = [
        call(100_000, 1_000 * wall, cpu=350_000, waited=1_000 * wait)
        for wall, wait in zip(walls, waits, strict=True)
    ]
    found = timing.calibrate(calls, device="cpu")
    assert found.wall_ns == 400_000
    assert found.cpu_ns == 250_000
    # 2 * (475 - 325) us, half of 400 us, and 20 us.
    assert found.slack_ns == 300_000 + 200_000 + limits.CLOCK_FLOOR_NS


def test_claims_count_while_the_parents_clock_agrees() -> None:
    # 1.7 - 0.4 = 1.3 ms is at most 1.0 * 1.25 + 0.1 ms.
    found = times(*[call(1 * MS, int(1.7 * MS), cpu=int(1.2 * MS))] * 3)
    assert found.draws_ms == (1.0, 1.0, 1.0)
    assert found.findings == ()


def test_a_claim_far_below_the_parents_clock_gives_way_to_it() -> None:
    found = times(*[call(1, int(2.4 * MS), cpu=int(2.3 * MS))] * 3)
    assert found.draws_ms == pytest.approx((2.0, 2.0, 2.0))
    assert (
        "the child claims 0.0000 ms a call, the parent's clock says 2.0000 ms"
        in (found.findings[0])
    )


def test_a_negative_or_zero_claim_never_becomes_a_time() -> None:
    for claimed in (-5 * MS, 0):
        assert all(ms > 0 for ms in times(*[call(claimed, int(0.4 * MS))] * 3).draws_ms)


def test_waiting_for_a_core_is_not_held_against_the_child() -> None:
    found = times(*[call(1 * MS, 9 * MS, cpu=int(1.3 * MS), waited=int(7.6 * MS))] * 3)
    assert found.draws_ms == (1.0, 1.0, 1.0)


def test_work_on_other_cores_is_counted_as_if_done_on_one() -> None:
    # 1 ms by both wall clocks, but 4.3 - 0.3 ms of processor time.
    calls = [call(1 * MS, int(1.4 * MS), cpu=int(4.3 * MS))] * 3
    found = times(*calls)
    assert found.draws_ms == pytest.approx((4.0, 4.0, 4.0))
    assert "the processor time is 4.0000 ms" in found.findings[0]
    # A GPU kernel's host side may work as it likes.
    assert times(*calls, device="cuda").draws_ms == (1.0, 1.0, 1.0)


def test_the_slowest_clock_counts_when_both_disagree() -> None:
    found = times(*[call(1, int(2.4 * MS), cpu=int(5.3 * MS))] * 3)
    assert found.draws_ms == pytest.approx((5.0, 5.0, 5.0))
    assert len(found.findings) == 2


def test_one_wild_draw_moves_no_median() -> None:
    calls = [call(1 * MS, int(1.5 * MS), cpu=1 * MS)] * 9 + [call(1 * MS, 90 * MS, cpu=80 * MS)]
    assert times(*calls).findings == ()


def test_a_clock_that_is_missing_is_left_out() -> None:
    assert difference(None, 5) is None
    assert difference(3, 5) == 2
    found = times(*[call(1 * MS, int(1.5 * MS), cpu=None)] * 3)
    assert found.draws_ms == (1.0, 1.0, 1.0)


def test_a_process_is_clocked_from_outside() -> None:
    child = os.fork()
    if child == 0:
        while True:
            pass
    clocks = ChildClocks(child)
    try:
        before = clocks.read()
        # Long enough for any machine to give the child a turn.
        deadline = time.monotonic() + 30
        while (difference(before.cpu_ns, clocks.read().cpu_ns) or 0) < MS:
            assert time.monotonic() < deadline
    finally:
        clocks.close()
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ChildClocks(child).read().cpu_ns is None


def test_pinning_ends_with_the_block() -> None:
    allowed = os.sched_getaffinity(0)
    core = timing.idlest_core(timing.idle_ticks())
    assert core in allowed
    with timing.pinned(os.getpid(), core, device="cpu"):
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == allowed
    with timing.pinned(None, core, device="cuda"):
        assert os.sched_getaffinity(0) == allowed
