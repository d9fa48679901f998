"""One row of the board: every published number of a set of comparisons."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leaderboard.stats import intervals, rates
from leaderboard.stats.intervals import Interval, Unit
from leaderboard.stats.outcomes import Comparison
from leaderboard.stats.paired import MKB_1, Effect, Profile, effect, log_ratio, paired_ratio


@dataclass(frozen=True)
class Summary:
    """What comparisons say together. Rates and lift are fractions of 1; unknown is None.

    `n` counts problems with a comparison; `n_skipped` counts those where none of the sources
    wrote a skill. S is 0 … 100.
    """

    scoring: str
    n_planned: int
    n: int
    n_skipped: int
    lift: float | None
    lift_low: float | None
    lift_high: float | None
    help_rate: float | None
    help_low: float | None
    help_high: float | None
    harm_rate: float | None
    harm_low: float | None
    harm_high: float | None
    neutral_rate: float | None
    solo_pass_rate: float | None
    conditioned_pass_rate: float | None
    solo_s: float | None
    conditioned_s: float | None


def summarise(
    comparisons: Sequence[Comparison], *, n_planned: int, seed: int, profile: Profile = MKB_1
) -> Summary:
    """Return every number of a set of resolved comparisons. The problem is the unit.

    Args:
        comparisons: of one entry, device and workload; one direction, or both.
        n_planned: problems planned, resolved or not.
        seed: of the bootstrap; the same seed and comparisons, in any order, give the same numbers.
        profile: how attempts are scored.

    Raises:
        ValueError: one comparison is given twice, or more problems resolved than planned.
    """
    problems = _by_problem(comparisons)
    if len(problems) > n_planned:
        raise ValueError(f"{len(problems)} problems have comparisons but {n_planned} were planned")
    rows = _Rows(problems, profile, seed)
    lift, helped, harmed = rows.lift(), rows.share(Effect.HELPED), rows.share(Effect.HARMED)
    solos, conditioned = rates.solos(comparisons), rates.conditioned(comparisons)
    return Summary(
        scoring=profile.name,
        n_planned=n_planned,
        n=len(problems),
        n_skipped=rows.n_skipped,
        lift=lift.value,
        lift_low=lift.low,
        lift_high=lift.high,
        help_rate=helped.value,
        help_low=helped.low,
        help_high=helped.high,
        harm_rate=harmed.value,
        harm_low=harmed.low,
        harm_high=harmed.high,
        neutral_rate=rows.share(Effect.NEUTRAL).value,
        solo_pass_rate=rates.pass_rate(solos),
        conditioned_pass_rate=rates.pass_rate(conditioned),
        solo_s=rates.ladder(solos),
        conditioned_s=rates.ladder(conditioned),
    )


def seed_of(comparisons: Sequence[Comparison]) -> int:
    """Return a bootstrap seed that depends on the comparisons alone, not on their order."""
    text = "\n".join(sorted(map(repr, comparisons)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True)
class _Number:
    """A point and its interval; unknown parts are None."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, value: float | None, ends: Interval | None) -> "_Number":
        if ends is None:
            return cls(value, None, None)
        return cls(value, ends.low, ends.high)


@dataclass(frozen=True)
class _Rows:
    """Comparisons by problem, with what their numbers depend on."""

    problems: dict[int, list[Comparison]]
    profile: Profile
    seed: int

    @property
    def n_skipped(self) -> int:
        skips = ([item.conditioned is None for item in items] for items in self.problems.values())
        return sum(map(all, skips))

    def lift(self) -> _Number:
        logs = self._units(lambda item: log_ratio(paired_ratio(item, self.profile)))
        mean = _mean(logs)
        ends = intervals.bootstrap_lift(logs, seed=self.seed)
        return _Number.of(None if mean is None else math.expm1(mean), ends)

    def share(self, wanted: Effect) -> _Number:
        """The share of this effect: Wilson's interval while each problem has one comparison."""
        units = self._units(
            lambda item: effect(paired_ratio(item, self.profile), self.profile) == wanted
        )
        if any(len(items) > 1 for items in self.problems.values()):
            return _Number.of(_mean(units), intervals.bootstrap_mean(units, seed=self.seed))
        n_wanted = round(sum(unit.value for unit in units))
        return _Number.of(_mean(units), intervals.wilson(n_wanted, len(units)))

    def _units(self, value: Callable[[Comparison], float]) -> list[Unit]:
        """One unit a problem: its family, and the mean of `value` over its comparisons."""
        return [
            Unit(items[0].family, math.fsum(map(value, items)) / len(items))
            for items in self.problems.values()
        ]


def _by_problem(comparisons: Sequence[Comparison]) -> dict[int, list[Comparison]]:
    problems: dict[int, list[Comparison]] = defaultdict(list)
    seen = set()
    for item in comparisons:
        key = (item.problem, item.replicate, item.direction)
        if key in seen:
            raise ValueError(
                f"problem {item.problem}, replicate {item.replicate} is there twice; give one"
                " direction at a time, or comparisons that name theirs"
            )
        seen.add(key)
        problems[item.problem].append(item)
    return dict(problems)


def _mean(units: Sequence[Unit]) -> float | None:
    return math.fsum(unit.value for unit in units) / len(units) if units else None
