"""One run with all its trials, live; and the form that starts one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import conditional_page, require_http_methods, require_safe

from leaderboard.forms import RunForm, sent, status_of, taken
from leaderboard.models import Run, Trial
from leaderboard.services import runs
from leaderboard.views import access, marks, states

_STATE_WORDS = {
    Trial.Status.WAITING: "waiting for a source",
    Trial.Status.QUEUED: "queued",
    Trial.Status.RUNNING: "running",
    Trial.Status.GRADED: "graded",
    Trial.Status.SKIPPED: "skipped",
    Trial.Status.FAILED: "failed for an infrastructure reason",
}


@dataclass(frozen=True)
class Line:
    """One trial and why it is where it is."""

    trial: Trial
    mark: marks.Mark
    reason: str


@dataclass(frozen=True)
class Tally:
    """How many trials are in one state."""

    word: str
    n: int


@dataclass(frozen=True)
class RunPage:
    """All that run.html and _run_trials.html may use, as `page`."""

    run: Run
    lines: list[Line]
    tallies: list[Tally]
    n_done: int
    is_over: bool


@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a run; public, for started runs are counted in public."""
    return render(request, "leaderboard/run.html", {"page": _page(pk)})


@require_safe
@conditional_page
def run_trials(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the trials alone, or 304; static/js/live.js polls it while the run goes on."""
    return render(request, "leaderboard/_run_trials.html", {"page": _page(pk)})


@access.signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Start a run of one's own entry on chosen problems."""
    entry = access.owned_entry(request, slug)
    form = RunForm(sent(request))
    if started := taken(form, runs.start, entry, started_by=request.user):
        messages.success(request, f"Run {started.pk} has started.")
        return redirect("run", pk=started.pk)
    context = {"entry": entry, "form": form}
    return render(request, "leaderboard/run_new.html", context, status=status_of(form))


def _page(pk: int) -> RunPage:
    found = get_object_or_404(Run.objects.select_related("entry"), pk=pk)
    trials = list(found.trials.select_related("problem").defer("verdict", "end_detail"))
    counts = Counter(trial.status for trial in trials)
    n_left = sum(counts[status] for status in ("waiting", "queued", "running"))
    return RunPage(
        run=found,
        lines=_lines(trials),
        tallies=[
            Tally(_STATE_WORDS[status], counts[status]) for status in Trial.Status if counts[status]
        ],
        n_done=len(trials) - n_left,
        is_over=n_left == 0,
    )


def _lines(trials: Sequence[Trial]) -> list[Line]:
    siblings: dict[tuple[int, int], dict[str, Trial]] = {}
    for trial in trials:
        siblings.setdefault((trial.problem_id, trial.replicate), {})[trial.arm] = trial
    return [
        Line(
            trial,
            marks.of_trial(trial),
            states.short(trial, siblings[trial.problem_id, trial.replicate]),
        )
        for trial in trials
    ]
