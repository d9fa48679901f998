"""The wall clock of an attempt and its warnings."""

import pytest

from runner.attempt.budget import Budget


class Clock:
    def __init__(self) -> None:
        self.now_sec = 1_000.0

    def __call__(self) -> float:
        return self.now_sec


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_is_over_when_the_clock_has_run_as_long_as_granted(clock: Clock) -> None:
    budget = Budget(60.0, clock)
    clock.now_sec += 59.5
    assert (budget.elapsed_sec, budget.left_sec, budget.is_over) == (59.5, 0.5, False)
    clock.now_sec += 0.5
    assert budget.is_over


def test_warnings_come_at_half_time_at_five_minutes_and_at_one_each_once(clock: Clock) -> None:
    budget = Budget(2_400.0, clock)
    said = []
    for _ in range(240):
        clock.now_sec += 10
        if warning := budget.warning():
            said.append((budget.left_sec, warning))
    assert [left for left, _ in said] == [1_200.0, 300.0, 60.0]
    assert said[0][1] == "20 minutes of the attempt are left."
    assert said[2][1].startswith("60 seconds")
    assert "SKILL.md" in said[2][1]


def test_warnings_that_came_due_together_are_said_once(clock: Clock) -> None:
    budget = Budget(2_400.0, clock)
    clock.now_sec += 2_390
    assert budget.warning() is not None
    assert budget.warning() is None


def test_a_short_attempt_is_not_warned_at_its_start(clock: Clock) -> None:
    budget = Budget(90.0, clock)
    assert budget.warning() is None
    clock.now_sec += 45
    assert budget.warning() is not None
