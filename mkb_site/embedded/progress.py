"""Tells in plain words what the runs are doing, as the database learns of it."""

from collections.abc import Iterator

from leaderboard.models import Ranking, Trial
from leaderboard.models.transfers import Transfer, find_transfer
from runner.protocol import Arm, Direction, Outcome

_ENDED = (Trial.Status.GRADED, Trial.Status.SKIPPED, Trial.Status.FAILED)
_SIGNS = {"helped": "▲", "harmed": "▼", "neutral": "◆"}


class Teller:
    """Prints each trial and comparison once, and a summary when nothing is left to run."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._told = set(Trial.objects.filter(status__in=_ENDED).values_list("pk", flat=True))
        self._settled: set[int] = set()
        self._is_idle = False
        if self._told:
            print(f"{len(self._told)} trials are already done.")

    def tell(self) -> None:
        """Print what is new since the last call."""
        news = Trial.objects.filter(status__in=_ENDED).exclude(pk__in=self._told)
        for trial in news.select_related("entry", "problem").order_by("ended_at"):
            self._told.add(trial.pk)
            n_left = Trial.objects.exclude(status__in=_ENDED).count()
            print(f"{_trial_line(trial)}   [{n_left} trials to go]")
            for transfer in _transfers_of(trial):
                if transfer.comparison is not None and transfer.conditioned.pk not in self._settled:
                    self._settled.add(transfer.conditioned.pk)
                    print(_transfer_line(transfer))
        self._tell_end()

    def _tell_end(self) -> None:
        is_idle = not Trial.objects.exclude(status__in=_ENDED).exists()
        if is_idle and not self._is_idle:
            print("\nEvery planned trial is done:")
            for ranking in Ranking.objects.select_related("entry").filter(n__gt=0):
                print(f"  {_ranking_line(ranking)}")
            print(f"Look at {self._url} — press Ctrl-C to stop.\n")
        self._is_idle = is_idle


def _trial_line(trial: Trial) -> str:
    what = f"p{trial.problem_id:02d} {Arm(trial.arm).label}"
    if trial.status == Trial.Status.GRADED:
        if trial.speedup is not None:
            return f"{what}: passed, {trial.speedup:.2f} × eager"
        return f"{what}: {Outcome(trial.outcome).replace('_', ' ')}"
    return f"{what}: {trial.get_status_display()} ({trial.reason})"


def _transfers_of(trial: Trial) -> Iterator[Transfer]:
    """Yield the transfers that this trial is the conditioned end of, or a solo of."""
    for direction in Direction:
        if Arm(trial.arm).direction in (None, direction):
            entry, problem = trial.entry.slug, trial.problem.slug
            yield find_transfer(entry, problem, direction, trial.replicate)


def _transfer_line(transfer: Transfer) -> str:
    what = f"  → p{transfer.conditioned.problem_id:02d} {transfer.direction.label}"
    if transfer.conditioned.status == Trial.Status.SKIPPED:
        return f"{what}: no skill to hand on, counts as neutral"
    return f"{what}: {_SIGNS[str(transfer.effect)]} {transfer.effect}, ratio {transfer.ratio:.2f} ×"


def _ranking_line(ranking: Ranking) -> str:
    direction = ranking.get_direction_display()
    lift = "unknown" if ranking.lift is None else f"{ranking.lift:+.1%}"
    return (
        f"{ranking.entry.name}, {direction}: {ranking.n} of {ranking.n_planned} problems,"
        f" lift {lift}, helped {ranking.help_rate:.0%}, harmed {ranking.harm_rate:.0%}"
    )
