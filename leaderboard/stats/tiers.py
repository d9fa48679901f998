"""Quality tiers of one attempt, and where a source stands against the solo it helps."""

from enum import StrEnum

from leaderboard.stats.outcomes import Comparison, Graded

THRESHOLDS = (0.0, 0.5, 1.0, 2.0, 4.0)


class Standing(StrEnum):
    """The source's tier against the solo's."""

    ABOVE = "above"
    SAME = "same"
    BELOW = "below"


def attains(graded: Graded, threshold: float) -> bool:
    """Say whether an attempt passed with at least this speed-up."""
    return graded.speedup is not None and graded.speedup >= threshold


def tier(graded: Graded) -> int:
    """Return how many thresholds are attained: 0 for a failure, 5 from 4 × on."""
    return sum(attains(graded, threshold) for threshold in THRESHOLDS)


def standing(comparison: Comparison) -> Standing:
    """Say where the source's tier stands against the solo's."""
    difference = tier(comparison.source) - tier(comparison.solo)
    if difference == 0:
        return Standing.SAME
    return Standing.ABOVE if difference > 0 else Standing.BELOW
