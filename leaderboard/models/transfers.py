"""A transfer: the three trials of one direction and replicate, and what they say together."""

from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.models.entries import Entry
from leaderboard.models.trials import Trial, TrialQuerySet
from leaderboard.stats.outcomes import Comparison, Graded
from leaderboard.stats.paired import Effect, effect, paired_ratio
from leaderboard.stats.tiers import Standing, standing
from runner.protocol import Arm, Direction


@dataclass(frozen=True)
class Transfer:
    """Source, solo and conditioned trial of one entry, problem, direction and replicate.

    `counts` is TrialQuerySet.rankable's answer at the time of reading.
    """

    source: Trial
    solo: Trial
    conditioned: Trial
    counts: bool

    @property
    def direction(self) -> Direction:
        """Where the skill comes from and goes."""
        direction = Arm(self.conditioned.arm).direction
        if direction is None:
            raise ValueError(f"{self.conditioned} is a solo; a transfer ends in a conditioned arm")
        return direction

    @property
    def reverse(self) -> Direction:
        """The direction of the twin transfer, whose trials are the same two solos and one more."""
        return self.direction.reverse

    @property
    def reverse_arm(self) -> Arm:
        """The arm of the twin's conditioned trial."""
        return Arm.conditioned(self.reverse)

    @property
    def is_skipped(self) -> bool:
        """Whether the source wrote no skill, so that the conditioned attempt never ran."""
        return self.conditioned.status == Trial.Status.SKIPPED

    @property
    def comparison(self) -> Comparison | None:
        """What statistics take; None until all three trials (or the skip) hold a verdict."""
        source, solo = graded(self.source), graded(self.solo)
        conditioned = graded(self.conditioned)
        if source is None or solo is None or (conditioned is None and not self.is_skipped):
            return None
        problem = self.conditioned.problem
        return Comparison(
            problem=problem.number,
            family=problem.family,
            replicate=self.conditioned.replicate,
            source=source,
            solo=solo,
            conditioned=conditioned,
            direction=self.direction,
        )

    @property
    def ratio(self) -> float | None:
        """The paired ratio; None until resolved."""
        return paired_ratio(self.comparison) if self.comparison else None

    @property
    def effect(self) -> Effect | None:
        """Helped, neutral or harmed; None until resolved."""
        return None if self.ratio is None else effect(self.ratio)

    @property
    def standing(self) -> Standing | None:
        """The source's tier against the solo's; None until resolved."""
        return standing(self.comparison) if self.comparison else None


def graded(trial: Trial) -> Graded | None:
    """Return a trial's result as statistics take it; None while it has none."""
    if trial.status != Trial.Status.GRADED or trial.passed is None:
        return None
    return Graded(passed=trial.passed, speedup=trial.speedup)


def find_transfer(
    entry_slug: str, problem_slug: str, direction: Direction, replicate: int
) -> Transfer:
    """Return one transfer, with run, problem, kernels and skills of all its trials loaded.

    Raises:
        Trial.DoesNotExist: nothing of the kind was planned.
    """
    trials = Trial.objects.filter(
        entry__slug=entry_slug, problem__slug=problem_slug, replicate=replicate
    ).select_related("run", "kernel", "skill", "received_skill")
    found = [item for item in transfers_among(trials) if item.direction == direction]
    if not found:
        raise Trial.DoesNotExist(
            f"no transfer {entry_slug}/{problem_slug}/{direction}/r{replicate} was planned"
        )
    return found[0]


def transfers_of(
    entry: Entry,
    *,
    direction: Direction | None = None,
    device: str | None = None,
    workload: str | None = None,
) -> list[Transfer]:
    """Return an entry's transfers by problem, replicate and direction, in two queries.

    Texts and stored verdicts are left in the database.
    """
    trials = Trial.objects.filter(entry=entry).select_related("run").defer("verdict", "end_detail")
    if device is not None:
        trials = trials.filter(run__device=device)
    if workload is not None:
        trials = trials.filter(run__workload=workload)
    return [item for item in transfers_among(trials) if direction in (None, item.direction)]


def transfers_among(trials: TrialQuerySet) -> list[Transfer]:
    """Return every transfer whose three trials are all in the set, in two queries."""
    rows = {
        (trial.entry_id, trial.problem_id, trial.replicate, trial.arm): trial
        for trial in trials.select_related("problem", "entry")
    }
    counting = set(trials.order_by().rankable().values_list("pk", flat=True))
    return list(_triples(rows, counting))


def _triples(
    rows: dict[tuple[int, int, int, str], Trial], counting: set[int]
) -> Iterable[Transfer]:
    for (entry, problem, replicate, arm), trial in sorted(rows.items(), key=lambda item: item[0]):
        source_arm, baseline_arm = Arm(arm).source, Arm(arm).baseline
        if source_arm is None or baseline_arm is None:
            continue
        source = rows.get((entry, problem, replicate, source_arm))
        solo = rows.get((entry, problem, replicate, baseline_arm))
        if source is not None and solo is not None:
            yield Transfer(source, solo, trial, counts=trial.pk in counting)
