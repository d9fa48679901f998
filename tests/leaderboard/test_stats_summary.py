"""Rates, the ladder, and whole rows of the board."""

import math
import random
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.models import Ranking
from leaderboard.stats import rates
from leaderboard.stats.intervals import wilson
from leaderboard.stats.outcomes import Comparison, Graded
from leaderboard.stats.summary import Summary, seed_of, summarise
from runner.protocol import Direction

FAILED = Graded(passed=False)


def passed(speedup: float) -> Graded:
    return Graded(passed=True, speedup=speedup)


def compare(
    problem: int,
    solo: Graded,
    conditioned: Graded | None,
    *,
    replicate: int = 1,
    family: str = "moe",
    direction: Direction | None = None,
) -> Comparison:
    return Comparison(
        problem=problem,
        family=family,
        replicate=replicate,
        source=FAILED,
        solo=solo,
        conditioned=conditioned,
        direction=direction,
    )


def test_the_ladder_is_the_mean_share_over_five_thresholds() -> None:
    attempts = [FAILED, passed(0.4), passed(1.0), passed(4.0)]
    # R@0 = 3/4, R@½ = 2/4, R@1 = 2/4, R@2 = 1/4, R@4 = 1/4; mean = 2.25 / 5
    assert rates.rate_at(attempts, 1.0) == 0.5
    assert rates.pass_rate(attempts) == 0.75
    assert rates.ladder(attempts) == pytest.approx(45.0)


def test_no_attempts_have_no_rates() -> None:
    assert rates.rate_at([], 1.0) is None
    assert rates.pass_rate([]) is None
    assert rates.ladder([]) is None


def test_a_skipped_attempt_counts_as_its_own_solo() -> None:
    skipped = compare(2, passed(2.0), None)
    assert rates.conditioned([skipped]) == [passed(2.0)]


def test_a_summary_has_the_fields_of_a_ranking() -> None:
    columns = {field.name for field in Ranking._meta.get_fields()}
    identity = {"id", "entry", "direction", "device", "workload", "version", "refreshed_at"}
    assert {field.name for field in fields(Summary)} == columns - identity


def test_four_problems_by_hand() -> None:
    found = summarise(
        [
            compare(1, passed(1.0), passed(2.0)),  # ρ = 2, helped
            compare(2, passed(1.0), FAILED),  # ρ = 1/8, harmed
            compare(3, passed(1.0), passed(1.01)),  # neutral
            compare(4, FAILED, None),  # skipped: ρ = 1
        ],
        n_planned=6,
        seed=1,
    )
    assert found.scoring == "mkb-1"
    assert (found.n_planned, found.n, found.n_skipped) == (6, 4, 1)
    # (2 · 1/8 · 1.01 · 1)^(1/4) - 1 = 0.2525^(1/4) - 1
    assert found.lift == pytest.approx(0.2525**0.25 - 1)
    assert (found.help_rate, found.harm_rate, found.neutral_rate) == (0.25, 0.25, 0.5)
    one_in_four = wilson(1, 4)
    assert one_in_four is not None
    assert (found.help_low, found.help_high) == (one_in_four.low, one_in_four.high)
    assert (found.harm_low, found.harm_high) == (one_in_four.low, one_in_four.high)
    assert found.solo_pass_rate == 0.75
    assert found.conditioned_pass_rate == 0.5  # 2 passes, 1 failure, 1 skip on a failed solo
    # solo: R = 3/4 at 0, ½ and 1, else 0 → 100 · 2.25 / 5
    assert found.solo_s == pytest.approx(45.0)
    # conditioned: 2/4 at 0, ½, 1; 1/4 at 2; 0 at 4 → 100 · 1.75 / 5
    assert found.conditioned_s == pytest.approx(35.0)
    assert found.lift_low is not None
    assert found.lift_high is not None
    assert found.lift_low < found.lift < found.lift_high


def test_replicates_are_averaged_within_their_problem_first() -> None:
    found = summarise(
        [
            compare(1, passed(1.0), passed(4.0), replicate=1),
            compare(1, passed(1.0), passed(1.0), replicate=2),
            compare(1, passed(1.0), passed(1.0), replicate=3),
            compare(2, passed(2.0), passed(1.0), replicate=1),
        ],
        n_planned=2,
        seed=1,
    )
    # problem 1: ln 4 / 3; problem 2: -ln 2. exp((2/3 - 1) / 2 · ln 2) - 1 = 2^(-1/6) - 1
    assert found.lift == pytest.approx(2 ** (-1 / 6) - 1)
    # help: (1/3 + 0) / 2, harm: (0 + 1) / 2, neutral: (2/3 + 0) / 2
    assert found.help_rate == pytest.approx(1 / 6)
    assert found.harm_rate == pytest.approx(1 / 2)
    assert found.neutral_rate == pytest.approx(1 / 3)
    # The bootstrap draws both problems, either twice, or one of each.
    assert (found.help_low, found.help_high) == pytest.approx((0.0, 1 / 3))
    assert (found.harm_low, found.harm_high) == (0.0, 1.0)
    assert found.n == 2


def test_a_problem_is_skipped_only_when_every_replicate_is() -> None:
    half = [
        compare(1, passed(1.0), None, replicate=1),
        compare(1, passed(1.0), passed(1.0), replicate=2),
    ]
    assert summarise(half, n_planned=1, seed=1).n_skipped == 0
    assert summarise(half[:1], n_planned=1, seed=1).n_skipped == 1


def test_one_problem_has_a_lift_but_no_interval() -> None:
    found = summarise([compare(1, passed(1.0), passed(2.0))], n_planned=74, seed=1)
    assert found.lift == pytest.approx(1.0)
    assert found.lift_low is None
    assert found.lift_high is None
    assert found.help_rate == 1.0


def test_one_replicated_problem_has_no_interval_of_its_rates() -> None:
    twice = [compare(1, passed(1.0), passed(2.0), replicate=k) for k in (1, 2)]
    found = summarise(twice, n_planned=1, seed=1)
    assert found.help_rate == 1.0
    assert found.help_low is None


def test_nothing_resolved_is_unknown_and_not_zero() -> None:
    found = summarise([], n_planned=5, seed=1)
    assert (found.n, found.n_planned, found.n_skipped) == (0, 5, 0)
    numbers = [value for name, value in vars(found).items() if not name.startswith(("n", "sc"))]
    assert set(numbers) == {None}
    assert found.neutral_rate is None


def test_a_comparison_given_twice_is_refused() -> None:
    twice = [compare(1, passed(1.0), passed(2.0))] * 2
    with pytest.raises(ValueError, match="problem 1, replicate 1 is there twice"):
        summarise(twice, n_planned=1, seed=1)


def test_more_resolved_than_planned_is_refused() -> None:
    with pytest.raises(ValueError, match="1 problems have comparisons but 0 were planned"):
        summarise([compare(1, passed(1.0), passed(2.0))], n_planned=0, seed=1)


def test_both_directions_of_a_problem_make_one_unit_and_count_each_solo_once() -> None:
    there = compare(1, passed(1.0), passed(4.0), direction=Direction.CUTEDSL_TO_TIRX)
    back = compare(1, FAILED, FAILED, direction=Direction.TIRX_TO_CUTEDSL)
    found = summarise([there, replace(back, source=there.solo)], n_planned=1, seed=1)
    # One problem: exp((ln 4 + ln 1) / 2) - 1 = 1; two solos, one of which passed.
    assert found.n == 1
    assert found.lift == pytest.approx(1.0)
    assert found.solo_pass_rate == 0.5


results = st.one_of(st.just(FAILED), st.floats(0.05, 20.0).map(passed))
comparison_lists = st.lists(
    st.tuples(results, st.one_of(st.none(), results), st.sampled_from(["moe", "kv_cache"])),
    min_size=1,
    max_size=20,
).map(
    lambda rows: [
        compare(number, solo, after, family=family)
        for number, (solo, after, family) in enumerate(rows)
    ]
)


@settings(max_examples=30, deadline=None)
@given(comparison_lists)
def test_shares_add_up_and_intervals_hold_their_point(drawn: list[Comparison]) -> None:
    found = summarise(drawn, n_planned=len(drawn), seed=seed_of(drawn))
    assert found.help_rate is not None
    assert found.harm_rate is not None
    assert found.neutral_rate is not None
    assert found.help_rate + found.harm_rate + found.neutral_rate == pytest.approx(1.0)
    assert found.help_low is not None
    assert found.help_low <= found.help_rate
    assert found.lift is not None
    assert -63 / 64 <= found.lift <= 63


@settings(max_examples=20, deadline=None)
@given(comparison_lists, st.integers(0, 100))
def test_the_order_of_reading_changes_nothing(drawn: list[Comparison], shuffle: int) -> None:
    other = random.Random(shuffle).sample(drawn, len(drawn))
    assert seed_of(other) == seed_of(drawn)
    there = summarise(drawn, n_planned=20, seed=7)
    back = summarise(other, n_planned=20, seed=7)
    for name, value in vars(there).items():
        assert vars(back)[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_74_problems_with_the_public_pages_shares() -> None:
    # 12 helped, 33 harmed, 29 neutral: 12 ln 2 - 33 ln 2 over 74 → 2^(-21/74) - 1
    after = [2.0] * 12 + [0.5] * 33 + [1.0] * 29
    rows = [compare(k, passed(1.0), passed(x)) for k, x in enumerate(after)]
    found = summarise(rows, n_planned=74, seed=1)
    assert found.lift == pytest.approx(math.expm1(-21 / 74 * math.log(2)))
    assert (found.help_low, found.help_high) == pytest.approx((0.095, 0.262), abs=5e-4)
    assert (found.harm_low, found.harm_high) == pytest.approx((0.338, 0.559), abs=5e-4)
