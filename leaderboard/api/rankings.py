"""The board's numbers."""

from django.http import HttpRequest
from django.views.decorators.http import condition
from ninja import Router, Schema
from ninja.decorators import decorate_view

from leaderboard.models import Ranking
from runner.protocol import Direction

router = Router()


class IntervalOut(Schema):
    """A 95 % interval; shares of 1."""

    low: float
    high: float


class RankingOut(Schema):
    """One entry in one direction on one device and workload; rates and lift are shares of 1."""

    entry: str
    direction: str
    device: str
    workload: str
    n: int
    n_planned: int
    lift: float | None
    help: float | None
    harm: float | None
    neutral: float | None
    interval: IntervalOut | None
    scripted: bool
    scoring: str
    version: int


def _etag(request: HttpRequest) -> str:
    return f'"{Ranking.objects.version()}-{request.GET.urlencode()}"'


@router.get("/rankings", response=list[RankingOut])
@decorate_view(condition(etag_func=_etag))
def rankings(
    request: HttpRequest,  # noqa: ARG001 - ninja passes it
    direction: Direction | None = None,
    device: str | None = None,
    workload: str | None = None,
) -> list[RankingOut]:
    """List the published rankings; the interval is that of the lift, null where it is unknown."""
    wanted = {"direction": direction, "device": device, "workload": workload}
    found = Ranking.objects.filter(**{name: value for name, value in wanted.items() if value})
    return [_out(ranking) for ranking in found.select_related("entry")]


def _out(ranking: Ranking) -> RankingOut:
    low, high = ranking.lift_low, ranking.lift_high
    return RankingOut(
        entry=ranking.entry.slug,
        direction=ranking.direction,
        device=ranking.device,
        workload=ranking.workload,
        n=ranking.n,
        n_planned=ranking.n_planned,
        lift=ranking.lift,
        help=ranking.help_rate,
        harm=ranking.harm_rate,
        neutral=ranking.neutral_rate,
        interval=None if low is None or high is None else IntervalOut(low=low, high=high),
        scripted=ranking.entry.is_scripted,
        scoring=ranking.scoring,
        version=ranking.version,
    )
