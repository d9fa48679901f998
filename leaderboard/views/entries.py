"""One entry: its numbers per direction, and every transfer and solo as a place in a grid."""

from dataclasses import dataclass

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from leaderboard.charts.bar import Segment
from leaderboard.models import Entry, Ranking, Run, Trial, transfers_of
from leaderboard.views import marks
from leaderboard.views.board import bar_of
from leaderboard.views.cells import Line, lines
from runner.protocol import Direction, Dsl


@dataclass(frozen=True)
class Grid:
    """The lines of one device and workload."""

    device: str
    workload: str
    lines: list[Line]


@dataclass(frozen=True)
class Result:
    """One ranking with its direction in words and its bar."""

    ranking: Ranking
    direction: Direction
    bar: tuple[Segment, ...]


@dataclass(frozen=True)
class Usage:
    """What all graded trials used; None when any of them did not report it."""

    n_trials: int
    n_turns: int | None
    n_input_tokens: int | None
    n_output_tokens: int | None
    wall_sec: float | None


@dataclass(frozen=True)
class EntryPage:
    """All that entry.html may use, as `page`."""

    entry: Entry
    results: list[Result]
    grids: list[Grid]
    usage: Usage
    runs: list[Run]
    is_mine: bool
    dsls: tuple[Dsl, ...] = tuple(Dsl)
    directions: tuple[Direction, ...] = tuple(Direction)
    legend: tuple[marks.Mark, ...] = marks.LEGEND


@require_safe
def entry(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an entry; the same for everybody, but for its owner's link to manage it."""
    found = get_object_or_404(Entry, slug=slug)
    page = EntryPage(
        entry=found,
        results=_results(found),
        grids=_grids(found),
        usage=_usage(found),
        runs=list(found.runs.annotate(n_trials=Count("trials"))),
        is_mine=request.user.is_authenticated and found.owner_id == request.user.pk,
    )
    return render(request, "leaderboard/entry.html", {"page": page})


def _results(found: Entry) -> list[Result]:
    return [
        Result(ranking, Direction(ranking.direction), bar_of(ranking))
        for ranking in found.rankings.order_by("device", "workload", "direction")
    ]


def _grids(found: Entry) -> list[Grid]:
    transfers = transfers_of(found)
    settings = sorted(
        {(item.conditioned.run.device, item.conditioned.run.workload) for item in transfers}
    )
    return [
        Grid(
            device,
            workload,
            lines(
                item
                for item in transfers
                if (item.conditioned.run.device, item.conditioned.run.workload)
                == (device, workload)
            ),
        )
        for device, workload in settings
    ]


def _usage(found: Entry) -> Usage:
    graded = Trial.objects.filter(entry=found, status=Trial.Status.GRADED)
    names = ("n_turns", "n_input_tokens", "n_output_tokens", "wall_sec")
    found_sums = graded.aggregate(
        n_trials=Count("pk"),
        **{f"sum_{name}": Sum(name) for name in names},
        **{f"known_{name}": Count(name) for name in names},
    )
    n_trials = found_sums["n_trials"]
    sums = {
        name: found_sums[f"sum_{name}"] if found_sums[f"known_{name}"] == n_trials else None
        for name in names
    }
    return Usage(n_trials, **sums)
