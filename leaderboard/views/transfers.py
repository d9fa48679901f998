"""One transfer: source kernel, skill and conditioned kernel, and what their verdicts say."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.forms import ReviewForm
from leaderboard.models import Review, Transfer, Trial, find_transfer
from leaderboard.stats.paired import MKB_1, Effect
from leaderboard.views import access, marks, states
from leaderboard.views.diffs import Diff, diff
from leaderboard.views.panes import Pane, SkillPane, pane, skill_pane
from runner.protocol import Direction


@dataclass(frozen=True)
class TransferPage:
    """All that transfer.html may use, as `page`."""

    transfer: Transfer
    mark: marks.Mark
    time_ratio: float | None
    theta: float
    source: Pane
    skill: SkillPane | None
    conditioned: Pane
    solo: Pane
    diff: Diff | None
    states: list[tuple[str, Trial, str]]
    reviews: list[Review]
    is_rejected: bool
    review_form: ReviewForm | None

    @property
    def verdict_panes(self) -> tuple[Pane, ...]:
        """The three trials in the order in which their verdicts are listed."""
        return self.solo, self.conditioned, self.source

    @property
    def verdict_word(self) -> str:
        """Helped, harmed or neutral, as a sentence ends."""
        words = {Effect.HELPED: "helped", Effect.HARMED: "harmed"}
        return words.get(self.transfer.effect or Effect.NEUTRAL, "neither helped nor harmed")


@require_safe
def transfer(
    request: HttpRequest, slug: str, problem_slug: str, direction: str, replicate: int
) -> HttpResponse:
    """Show one transfer; its address never changes."""
    found = transfer_or_404(slug, problem_slug, direction, replicate)
    form = ReviewForm() if access.may_review(request) else None
    return render(request, "leaderboard/transfer.html", {"page": page_of(found, form)})


def transfer_or_404(slug: str, problem_slug: str, direction: str, replicate: int) -> Transfer:
    """Return the transfer at an address.

    Raises:
        Http404: the direction does not exist, or nothing was planned there.
    """
    try:
        return find_transfer(slug, problem_slug, Direction(direction), replicate)
    except (ValueError, Trial.DoesNotExist) as error:
        raise Http404(str(error)) from error


def page_of(found: Transfer, form: ReviewForm | None) -> TransferPage:
    """Gather the page of a transfer; `form` is None for those who may not review."""
    direction, trials = found.direction, (found.source, found.solo, found.conditioned)
    source, target = direction.source.label, direction.target.label
    reviews = list(found.conditioned.reviews.select_related("reviewer"))
    standing = [review for review in reviews if review.replaced_at is None]
    names = ("Source", "Solo baseline", "Conditioned")
    return TransferPage(
        transfer=found,
        mark=marks.of_transfer(found),
        time_ratio=_time_ratio(found),
        theta=MKB_1.theta,
        source=pane("source", f"Source kernel, solo in {source}", found.source),
        skill=skill_pane(found.source),
        conditioned=pane("conditioned", f"Conditioned kernel, {target}", found.conditioned),
        solo=pane("solo", f"Solo baseline, {target}", found.solo),
        diff=_diff(found),
        states=[
            (name, trial, states.sentence(trial))
            for name, trial in zip(names, trials, strict=True)
            if trial.status != Trial.Status.GRADED
        ],
        reviews=reviews,
        is_rejected=any(review.rejects for review in standing),
        review_form=form,
    )


def _time_ratio(found: Transfer) -> float | None:
    """Conditioned over solo time, as scored: the inverse of the paired ratio."""
    return None if found.ratio is None else 1 / found.ratio


def _diff(found: Transfer) -> Diff | None:
    old, new = found.solo.kernel, found.conditioned.kernel
    return diff(old.text, new.text) if old and new else None
