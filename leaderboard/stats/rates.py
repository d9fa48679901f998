"""Shares of attempts: R@t, the ladder over all thresholds, and S."""

from collections.abc import Sequence

from leaderboard.stats.outcomes import Comparison, Graded
from leaderboard.stats.tiers import THRESHOLDS, attains


def rate_at(attempts: Sequence[Graded], threshold: float) -> float | None:
    """Return R@t, the share of attempts that passed at this speed-up; None without attempts."""
    if not attempts:
        return None
    return sum(attains(attempt, threshold) for attempt in attempts) / len(attempts)


def pass_rate(attempts: Sequence[Graded]) -> float | None:
    """Return R@0; None without attempts."""
    return rate_at(attempts, 0.0)


def ladder(attempts: Sequence[Graded]) -> float | None:
    """Return S, 100 times the mean of R@t over the thresholds; None without attempts."""
    if not attempts:
        return None
    return 100 * sum(rate_at(attempts, step) or 0.0 for step in THRESHOLDS) / len(THRESHOLDS)


def solos(comparisons: Sequence[Comparison]) -> list[Graded]:
    """Return the baseline attempts, each once.

    With both directions in the set, every solo is also the other direction's source; it is the
    baseline of one comparison alone, so sources are left out here.
    """
    return list({_target_of(item): item.solo for item in comparisons}.values())


def conditioned(comparisons: Sequence[Comparison]) -> list[Graded]:
    """Return the conditioned attempts, each once; a skipped one counts as its own solo."""
    return list({_target_of(item): item.in_target for item in comparisons}.values())


def _target_of(comparison: Comparison) -> tuple[int, int, str | None]:
    return comparison.problem, comparison.replicate, comparison.direction
