"""Wilson's interval and the stratified bootstrap, against hand figures, laws and scipy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from leaderboard.stats.intervals import Interval, Unit, bootstrap_lift, bootstrap_mean, wilson


def units(*values: float, family: str = "moe") -> list[Unit]:
    return [Unit(family, value) for value in values]


@pytest.mark.parametrize(
    ("k", "low", "high"),
    # The protocol's known totals at n = 74: 12/74 = 16 %, 33/74 = 45 %.
    [(12, 0.095, 0.262), (33, 0.338, 0.559)],
)
def test_wilson_gives_the_known_totals(k: int, low: float, high: float) -> None:
    found = wilson(k, 74)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-4)


@given(st.integers(1, 2_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(pair: tuple[int, int]) -> None:
    k, n = pair
    found = wilson(k, n)
    expected = stats.binomtest(k, n).proportion_ci(method="wilson")
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_stays_within_0_and_1(pair: tuple[int, int]) -> None:
    k, n = pair
    found = wilson(k, n)
    assert found is not None
    assert 0 <= found.low <= k / n <= found.high <= 1


def test_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3)])
def test_wilson_refuses_more_than_all(k: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"{k} of {n}"):
        wilson(k, n)


def test_fewer_than_two_problems_have_no_bootstrap() -> None:
    assert bootstrap_mean([], seed=1) is None
    assert bootstrap_lift(units(0.3), seed=1) is None


def test_one_family_agrees_with_scipy_on_the_same_draws() -> None:
    values = sorted(np.random.default_rng(5).normal(0.1, 0.5, 37))
    ours = bootstrap_mean(units(*values), seed=11)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(11)
    ).confidence_interval
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_the_lift_interval_is_the_mean_of_logs_made_a_ratio() -> None:
    logs = units(0.1, -0.2, 0.4, 0.0, 0.3)
    mean, lift = bootstrap_mean(logs, seed=3), bootstrap_lift(logs, seed=3)
    assert mean is not None
    assert lift == Interval(math.expm1(mean.low), math.expm1(mean.high))


def test_families_are_drawn_apart() -> None:
    # Within a family nothing varies, so no resample does, though the families differ.
    apart = units(0.0, 0.0, 0.0, family="moe") + units(1.0, 1.0, 1.0, family="mlp_norm")
    assert bootstrap_mean(apart, seed=1) == Interval(0.5, 0.5)


def test_families_of_one_are_drawn_together_for_alone_they_feign_certainty() -> None:
    six = [Unit(f"family {k}", float(k)) for k in range(6)]
    pooled = units(*(float(k) for k in range(6)))
    assert bootstrap_mean(six, seed=9) == bootstrap_mean(pooled, seed=9)


def test_a_single_family_of_one_joins_the_smallest_other() -> None:
    base = units(0.0, 0.0, 0.0, family="moe") + units(0.0, 0.0, family="mlp_norm")
    found = bootstrap_mean([*base, Unit("kv_cache", 6.0)], seed=2)
    # The 6 is drawn 0 … 3 times into a stratum of three: means 0 … 18/6.
    assert found is not None
    assert found.low == 0.0
    assert found.high in {2.0, 3.0}


family_values = st.tuples(st.sampled_from(["moe", "mlp_norm", "kv_cache"]), st.floats(-3, 3))
unit_lists = st.lists(family_values.map(lambda pair: Unit(*pair)), min_size=2, max_size=30)


@settings(max_examples=40, deadline=None)
@given(unit_lists, st.integers(0, 2**63), st.randoms())
def test_the_order_of_reading_changes_no_bootstrap(drawn, seed, order) -> None:
    shuffled = list(drawn)
    order.shuffle(shuffled)
    there = bootstrap_mean(drawn, seed=seed, n_resamples=200)
    back = bootstrap_mean(shuffled, seed=seed, n_resamples=200)
    assert there == back


@settings(max_examples=40, deadline=None)
@given(unit_lists, st.integers(0, 2**63))
def test_a_bootstrap_stays_within_the_values(drawn, seed) -> None:
    found = bootstrap_mean(drawn, seed=seed, n_resamples=200)
    values = [unit.value for unit in drawn]
    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    # 300 samples of 40; a percentile bootstrap covers slightly less than 95 %. Three standard
    # errors of a share near 0.94 with n = 300 are 0.041.
    generator = np.random.default_rng(17)
    hits = 0
    for seed in range(300):
        found = bootstrap_mean(units(*generator.normal(0.2, 1.0, 40)), seed=seed, n_resamples=1_000)
        assert found is not None
        hits += found.low <= 0.2 <= found.high
    assert hits / 300 == pytest.approx(0.94, abs=0.041)
