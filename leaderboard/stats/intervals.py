"""95 % intervals: Wilson's for a share of problems, the bootstrap over problems for the rest."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
N_RESAMPLES = 10_000
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True)
class Interval:
    """Both ends, in the unit of the number that it belongs to."""

    low: float
    high: float


@dataclass(frozen=True)
class Unit:
    """One problem's value, averaged over its comparisons, and the stratum that it is drawn in."""

    family: str
    value: float


def wilson(k: int, n: int) -> Interval | None:
    """Return Wilson's score interval of k in n; None when n is 0.

    Raises:
        ValueError: k is not within 0 … n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share; k must lie within 0 and n")
    if n == 0:
        return None
    share, square = k / n, _Z * _Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = _Z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    # At 0 of n and n of n the ends are exact; rounding would leave 1e-17.
    low = 0.0 if k == 0 else centre - half
    return Interval(low, 1.0 if k == n else centre + half)


def bootstrap_mean(
    units: Sequence[Unit], *, seed: int, n_resamples: int = N_RESAMPLES
) -> Interval | None:
    """Return the percentile interval of the units' mean; None with fewer than two units.

    Units are drawn with replacement within their family. A family of one would never vary and
    would feign certainty, so such families are drawn together, if need be with the smallest other.
    """
    if len(units) < 2:
        return None
    generator = np.random.default_rng(seed)
    totals = np.zeros(n_resamples)
    for values in _strata(units):
        picks = generator.integers(0, len(values), (n_resamples, len(values)))
        totals += values[picks].sum(axis=1)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(totals / len(units), [tail, 100 - tail])
    return Interval(float(low), float(high))


def bootstrap_lift(
    units: Sequence[Unit], *, seed: int, n_resamples: int = N_RESAMPLES
) -> Interval | None:
    """Return the interval of the lift; each unit's value is its problem's mean ln ρ."""
    found = bootstrap_mean(units, seed=seed, n_resamples=n_resamples)
    return found and Interval(math.expm1(found.low), math.expm1(found.high))


def _strata(units: Sequence[Unit]) -> list[NDArray[np.float64]]:
    families: dict[str, list[float]] = defaultdict(list)
    for unit in units:
        families[unit.family].append(unit.value)
    # By name, so that the order in which comparisons were read changes no draw.
    groups = [sorted(values) for _, values in sorted(families.items())]
    lone = [value for values in groups if len(values) == 1 for value in values]
    groups = sorted((values for values in groups if len(values) > 1), key=len)
    if len(lone) == 1 and groups:
        groups[0] = sorted(groups[0] + lone)
    elif lone:
        groups.append(sorted(lone))
    return [np.array(values) for values in groups]
