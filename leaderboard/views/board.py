"""The front page: one sentence per direction, the lift–harm plane, and the tables."""

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import condition, require_safe

from leaderboard.charts.bar import Segment, segments
from leaderboard.charts.plane import Plane, Point, plane
from leaderboard.models import Ranking, Review, Run, Trial
from runner.protocol import Arm, Direction

_UNFINISHED = (Trial.Status.WAITING, Trial.Status.QUEUED, Trial.Status.RUNNING)
RUNS_SHOWN = 5


@dataclass(frozen=True)
class Setting:
    """A device and workload: results of two settings never share a table."""

    device: str
    workload: str
    n: int


@dataclass(frozen=True)
class Row:
    """One ranking with its bar, and how many comparisons reviewers took out of it."""

    ranking: Ranking
    bar: tuple[Segment, ...]
    n_rejected: int


@dataclass(frozen=True)
class Section:
    """One direction: models by lift, scripted entries by name, and what the sentence is about."""

    direction: Direction
    models: list[Row]
    scripted: list[Row]
    leading: Ranking | None


@dataclass(frozen=True)
class Progress:
    """A run that still has trials to do."""

    run: Run
    n_done: int
    n_trials: int


@dataclass(frozen=True)
class BoardPage:
    """All that board.html and _board_results.html may use, as `page`."""

    setting: Setting | None
    settings: list[Setting]
    sections: list[Section]
    plane: Plane | None
    progress: list[Progress]
    scoring: str
    newest: Ranking | None


@require_safe
def board(request: HttpRequest) -> HttpResponse:
    """Show what is known on one device and workload."""
    return render(request, "leaderboard/board.html", {"page": _page(request)})


def _etag(request: HttpRequest) -> str:
    states = _unfinished_runs().values_list("pk", "n_done", "n_trials")
    text = f"{Ranking.objects.version()} {list(states)} {request.GET.urlencode()}"
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'


@require_safe
@condition(etag_func=_etag)
def board_results(request: HttpRequest) -> HttpResponse:
    """Return the measured part alone, or 304 while nothing moved; static/js/live.js polls."""
    return render(request, "leaderboard/_board_results.html", {"page": _page(request)})


def _page(request: HttpRequest) -> BoardPage:
    settings = _settings()
    setting = _chosen(settings, request)
    rows = _rows(setting) if setting else []
    rankings = [row.ranking for row in rows]
    return BoardPage(
        setting=setting,
        settings=settings,
        sections=[_section(direction, rows) for direction in Direction] if rows else [],
        plane=plane([_point(ranking) for ranking in rankings if ranking.n]),
        progress=[
            Progress(run, run.n_done, run.n_trials) for run in _unfinished_runs()[:RUNS_SHOWN]
        ],
        scoring=rankings[0].scoring if rankings else "",
        newest=max(rankings, key=lambda ranking: ranking.refreshed_at, default=None),
    )


def _settings() -> list[Setting]:
    """Every device and workload with rankings, the one with most comparisons first."""
    found = Ranking.objects.order_by().values("device", "workload").annotate(total=Sum("n"))
    settings = [Setting(row["device"], row["workload"], row["total"]) for row in found]
    return sorted(settings, key=lambda item: (-item.n, item.device, item.workload))


def _chosen(settings: list[Setting], request: HttpRequest) -> Setting | None:
    wanted = {name: request.GET[name] for name in ("device", "workload") if name in request.GET}
    for setting in settings:
        if all(getattr(setting, name) == value for name, value in wanted.items()):
            return setting
    if wanted and settings:
        raise Http404(f"nothing was measured with {wanted}")
    return None


def _rows(setting: Setting) -> list[Row]:
    rankings = Ranking.objects.filter(device=setting.device, workload=setting.workload)
    rejected = _rejected(setting)
    return [
        Row(ranking, bar_of(ranking), rejected[ranking.entry_id, ranking.direction])
        for ranking in rankings.select_related("entry").order_by("entry__name")
    ]


def _rejected(setting: Setting) -> Counter[tuple[int, str]]:
    """Count the comparisons that a standing review takes out, by entry and direction."""
    trials = Trial.objects.resolved().filter(
        run__device=setting.device,
        run__workload=setting.workload,
        pk__in=Review.objects.standing().rejecting().values("trial"),
    )
    pairs = trials.order_by().values_list("entry", "arm")
    return Counter((entry, Arm(arm).direction or "") for entry, arm in pairs)


def bar_of(ranking: Ranking) -> tuple[Segment, ...]:
    """Return the bar of a ranking; no parts while its rates are unknown."""
    rates = ranking.help_rate, ranking.neutral_rate, ranking.harm_rate
    if None in rates:
        return ()
    helped, neutral, harmed = (rate or 0.0 for rate in rates)
    return segments(helped=helped, neutral=neutral, harmed=harmed)


def _section(direction: Direction, rows: list[Row]) -> Section:
    ours = [row for row in rows if row.ranking.direction == direction]
    models = [row for row in ours if not row.ranking.entry.is_scripted]
    scripted = [row for row in ours if row.ranking.entry.is_scripted]
    models.sort(key=_lift, reverse=True)
    measured = [row for row in models if row.ranking.n] or [
        row for row in scripted if row.ranking.n
    ]
    leading = max(measured, key=_lift, default=None)
    return Section(direction, models, scripted, leading.ranking if leading else None)


def _lift(row: Row) -> float:
    return float("-inf") if row.ranking.lift is None else row.ranking.lift


def _point(ranking: Ranking) -> Point:
    return Point(
        name=ranking.entry.name,
        slug=ranking.entry.slug,
        direction=ranking.direction,
        is_scripted=ranking.entry.is_scripted,
        harm=ranking.harm_rate or 0.0,
        harm_interval=_pair(ranking.harm_low, ranking.harm_high),
        lift=ranking.lift or 0.0,
        lift_interval=_pair(ranking.lift_low, ranking.lift_high),
    )


def _pair(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _unfinished_runs() -> QuerySet[Any]:
    """Runs with trials still to do, newest first, with `n_done` and `n_trials`."""
    counted = Run.objects.select_related("entry").annotate(
        n_trials=Count("trials"),
        n_done=Count("trials", filter=~Q(trials__status__in=_UNFINISHED)),
        n_left=Count("trials", filter=Q(trials__status__in=_UNFINISHED)),
    )
    return counted.filter(n_left__gt=0)
