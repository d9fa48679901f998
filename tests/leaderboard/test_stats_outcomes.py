"""Tiers, standing, effective speed-up and the paired ratio of single comparisons."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.stats.outcomes import Comparison, Graded
from leaderboard.stats.paired import (
    Effect,
    effect,
    effective_speedup,
    paired_lift,
    paired_ratio,
)
from leaderboard.stats.tiers import Standing, standing, tier

FAILED = Graded(passed=False)
speedups = st.floats(1e-4, 1e4)
attempts = st.one_of(st.just(FAILED), speedups.map(lambda x: Graded(passed=True, speedup=x)))


def passed(speedup: float) -> Graded:
    return Graded(passed=True, speedup=speedup)


def compare(source: Graded, solo: Graded, conditioned: Graded | None) -> Comparison:
    return Comparison(
        problem=2,
        family="attention",
        replicate=1,
        source=source,
        solo=solo,
        conditioned=conditioned,
    )


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (FAILED, 0),
        (passed(0.49), 1),
        (passed(0.5), 2),
        (passed(1.0), 3),
        (passed(1.99), 3),
        (passed(2.0), 4),
        (passed(4.0), 5),
        (passed(100.0), 5),
    ],
)
def test_a_tier_counts_the_thresholds_attained(attempt: Graded, expected: int) -> None:
    assert tier(attempt) == expected


@pytest.mark.parametrize(
    ("source", "solo", "expected"),
    [
        (passed(2.0), passed(1.9), Standing.ABOVE),
        (passed(1.1), passed(1.9), Standing.SAME),
        (FAILED, passed(0.1), Standing.BELOW),
        (FAILED, FAILED, Standing.SAME),
    ],
)
def test_standing_is_the_sign_of_the_tier_difference(
    source: Graded, solo: Graded, expected: Standing
) -> None:
    assert standing(compare(source, solo, None)) is expected


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [(FAILED, 0.125), (passed(0.01), 0.25), (passed(3.0), 3.0), (passed(240.0), 8.0)],
)
def test_effective_speedup_is_clipped_and_a_failure_is_an_octave_below_the_slowest_pass(
    attempt: Graded, expected: float
) -> None:
    assert effective_speedup(attempt) == expected


@pytest.mark.parametrize(
    ("solo", "conditioned", "expected"),
    [
        (passed(1.0), passed(1.5), 1.5),
        (FAILED, passed(1.0), 8.0),  # 1 / (1/8)
        (passed(2.0), FAILED, 0.0625),  # (1/8) / 2
        (FAILED, FAILED, 1.0),
        (passed(16.0), passed(32.0), 1.0),  # both clipped to 8
        (passed(3.0), None, 1.0),  # skipped
        (FAILED, None, 1.0),
    ],
)
def test_the_paired_ratio_divides_effective_speedups(
    solo: Graded, conditioned: Graded | None, expected: float
) -> None:
    assert paired_ratio(compare(FAILED, solo, conditioned)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.05, Effect.HELPED),
        (1.0499, Effect.NEUTRAL),
        (1.0, Effect.NEUTRAL),
        (0.9525, Effect.NEUTRAL),  # 1/1.05 = 0.95238
        (1 / 1.05, Effect.HARMED),
        (0.5, Effect.HARMED),
    ],
)
def test_an_effect_needs_five_percent(ratio: float, expected: Effect) -> None:
    assert effect(ratio) is expected


@given(attempts, attempts, attempts)
def test_a_ratio_lies_between_the_extremes_of_the_profile(
    source: Graded, solo: Graded, conditioned: Graded
) -> None:
    # 8 / (1/8) = 64
    assert 1 / 64 <= paired_ratio(compare(source, solo, conditioned)) <= 64


@given(attempts, attempts)
def test_exchanging_solo_and_conditioned_inverts_the_ratio(one: Graded, other: Graded) -> None:
    there = paired_ratio(compare(FAILED, one, other))
    back = paired_ratio(compare(FAILED, other, one))
    assert there * back == pytest.approx(1.0)


@given(attempts, attempts)
def test_a_higher_tier_never_has_a_lower_effective_speedup(one: Graded, other: Graded) -> None:
    if tier(one) > tier(other):
        assert effective_speedup(one) >= effective_speedup(other)


def test_lift_of_one_doubling_and_one_halving_is_zero() -> None:
    # exp((ln 2 + ln 1/2) / 2) - 1 = 0
    assert paired_lift([2.0, 0.5]) == pytest.approx(0.0, abs=1e-12)


def test_lift_is_the_geometric_mean_less_one() -> None:
    # (2 * 4 * 1)^(1/3) - 1 = 2 - 1
    assert paired_lift([2.0, 4.0, 1.0]) == pytest.approx(1.0)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=74))
def test_swapping_base_and_skill_inverts_the_mean(ratios: list[float]) -> None:
    swapped = paired_lift([1 / ratio for ratio in ratios])
    assert (1 + paired_lift(ratios)) * (1 + swapped) == pytest.approx(1.0)


@pytest.mark.parametrize("ratios", [[], [0.0], [-1.0], [math.nan], [math.inf]])
def test_lift_refuses_what_has_no_logarithm(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match=r"ratio|comparison"):
        paired_lift(ratios)


@pytest.mark.parametrize("speedup", [None, 0.0, -1.0, math.nan, math.inf])
def test_a_pass_without_a_usable_time_is_refused(speedup: float | None) -> None:
    with pytest.raises(ValueError, match="finite and above zero"):
        Graded(passed=True, speedup=speedup)


def test_a_failure_with_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="only a passed one is timed"):
        Graded(passed=False, speedup=1.0)
