"""The paired ratio of one comparison, what it is called, and the lift of several."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from leaderboard.stats.outcomes import Comparison, Graded


@dataclass(frozen=True)
class Profile:
    """A scoring profile: speed-ups are clipped to [slowest, fastest]; a failure scores `failure`.

    A ratio of at least `theta` helps, one of at most 1 / `theta` harms.
    """

    name: str
    slowest: float
    fastest: float
    failure: float
    theta: float


# A failure stands one octave below the slowest pass, so that a geometric mean exists.
MKB_1 = Profile(name="mkb-1", slowest=1 / 4, fastest=8.0, failure=1 / 8, theta=1.05)


class Effect(StrEnum):
    """What a comparison says of the skill."""

    HELPED = "helped"
    NEUTRAL = "neutral"
    HARMED = "harmed"


def effective_speedup(graded: Graded, profile: Profile = MKB_1) -> float:
    """Return the attempt's speed-up as it is scored: clipped, and above zero when it failed."""
    if graded.speedup is None:
        return profile.failure
    return min(max(graded.speedup, profile.slowest), profile.fastest)


def paired_ratio(comparison: Comparison, profile: Profile = MKB_1) -> float:
    """Return the conditioned over the solo effective speed-up; above 1 the skill was better.

    A skipped comparison is 1: nothing was transferred.
    """
    conditioned = effective_speedup(comparison.in_target, profile)
    return conditioned / effective_speedup(comparison.solo, profile)


def effect(ratio: float, profile: Profile = MKB_1) -> Effect:
    """Name a paired ratio."""
    if ratio >= profile.theta:
        return Effect.HELPED
    return Effect.HARMED if ratio <= 1 / profile.theta else Effect.NEUTRAL


def paired_lift(ratios: Sequence[float]) -> float:
    """Return the geometric mean of the paired ratios, less one.

    Returns:
        A fraction: 0.25 says that kernels became 1.25 times as fast on average.

    Raises:
        ValueError: no ratio at all, or one that is not finite and above zero.

    Source:
        statistics.md, section 3, after "paired lift" in MetaKernelBench (arXiv 2610.05014).
    """
    if not ratios:
        raise ValueError("paired lift needs at least one comparison")
    return math.expm1(math.fsum(map(log_ratio, ratios)) / len(ratios))


def log_ratio(ratio: float) -> float:
    """Return ln ρ.

    Raises:
        ValueError: a ratio that is not finite and above zero.
    """
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"paired ratio {ratio} is not finite and above zero")
    return math.log(ratio)
