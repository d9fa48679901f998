"""Publish an entry's numbers: counting comparisons in, Ranking rows out."""

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from leaderboard.models import Entry, Ranking, Transfer, Trial, transfers_of
from leaderboard.services.turns import take_turn
from leaderboard.stats.summary import Summary, seed_of, summarise
from runner.protocol import Direction

# A cell of the board: direction, device, workload.
Cell = tuple[Direction, str, str]


@transaction.atomic
def refresh(entry: Entry) -> bool:
    """Recompute the entry's rankings; return whether a number changed.

    The version moves only then, so that validators of unchanged pages stay good. Safe to repeat.
    """
    # Before anything is read: a later turn sees all that an earlier one saw.
    take_turn()
    now = timezone.now()
    cells: dict[Cell, list[Transfer]] = defaultdict(list)
    for transfer in transfers_of(entry):
        run = transfer.conditioned.run
        cells[(transfer.direction, run.device, run.workload)].append(transfer)
    rows = {
        (Direction(row.direction), row.device, row.workload): row
        for row in Ranking.objects.filter(entry=entry)
    }
    version = Ranking.objects.version() + 1
    changed = [
        _publish(rows.get(cell) or _blank(entry, cell), _summary(cells.get(cell, [])), version)
        for cell in sorted(cells.keys() | rows.keys())
    ]
    Ranking.objects.filter(entry=entry).update(refreshed_at=now)
    return any(changed)


def behind() -> list[Entry]:
    """Return the entries with a trial that ended after their numbers were last computed.

    A crash between a report and its refresh leaves one behind.
    """
    ended = Trial.objects.filter(entry=OuterRef("pk"), ended_at__isnull=False)
    refreshed = Ranking.objects.filter(entry=OuterRef("pk")).order_by("refreshed_at")
    return list(
        Entry.objects.annotate(
            ended_at=_first(ended.order_by("-ended_at"), "ended_at"),
            refreshed_at=_first(refreshed, "refreshed_at"),
        ).filter(
            Q(ended_at__gt=F("refreshed_at")) | Q(ended_at__isnull=False, refreshed_at__isnull=True)
        )
    )


def _first(rows: QuerySet[Any], column: str) -> Subquery:
    return Subquery(rows.values(column)[:1])


def _summary(transfers: list[Transfer]) -> Summary:
    counting = [transfer.comparison for transfer in transfers if transfer.counts]
    comparisons = [comparison for comparison in counting if comparison is not None]
    n_planned = len({transfer.conditioned.problem_id for transfer in transfers})
    return summarise(comparisons, n_planned=n_planned, seed=seed_of(comparisons))


def _blank(entry: Entry, cell: Cell) -> Ranking:
    direction, device, workload = cell
    return Ranking(entry=entry, direction=direction, device=device, workload=workload)


def _publish(row: Ranking, summary: Summary, version: int) -> bool:
    """Write the numbers into the row where they differ; return whether they did."""
    numbers = asdict(summary)
    if row.pk and all(getattr(row, name) == value for name, value in numbers.items()):
        return False
    for name, value in numbers.items():
        setattr(row, name, value)
    row.version = version
    row.save()
    return True
