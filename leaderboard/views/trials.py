"""One trial: what it is doing, its submissions over time, its transcript, kernel and skill."""

import json
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import conditional_page, require_safe

from leaderboard.charts.timeline import Point, Timeline, timeline
from leaderboard.models import Artefact, Event, Submission, Trial
from leaderboard.views import marks, states, texts
from leaderboard.views.panes import Pane, SkillPane, pane, skill_pane
from runner.protocol import Coordinate

TURNS_SHOWN = 100
TURN_LIMIT_CHARS = 4_000


@dataclass(frozen=True)
class Turn:
    """One turn or note of the transcript, as inert lines."""

    event: Event
    speaker: str
    lines: list[SafeString]
    glance: str
    n_dropped_chars: int


@dataclass(frozen=True)
class Graded:
    """One submission with its mark and the grader's message."""

    submission: Submission
    mark: marks.Mark
    message: str


@dataclass(frozen=True)
class TrialPage:
    """All that trial.html and _trial_progress.html may use, as `page`."""

    trial: Trial
    mark: marks.Mark
    state: str
    is_over: bool
    submissions: list[Graded]
    timeline: Timeline | None
    turns: list[Turn]
    n_turns: int
    n_submissions_left: int
    elapsed_sec: float | None
    left_sec: float | None
    pane: Pane
    skill: SkillPane | None


@require_safe
def trial(request: HttpRequest, slug: str, coordinate: str) -> HttpResponse:
    """Show a trial in whatever state it is."""
    return render(request, "leaderboard/trial.html", {"page": _page(slug, coordinate)})


@require_safe
@conditional_page
def trial_progress(request: HttpRequest, slug: str, coordinate: str) -> HttpResponse:
    """Return the moving part alone, or 304; static/js/live.js polls it while the trial runs."""
    page = _page(slug, coordinate)
    return render(request, "leaderboard/_trial_progress.html", {"page": page})


@require_safe
def trial_kernel(_request: HttpRequest, slug: str, coordinate: str) -> HttpResponse:
    """Hand the final kernel out as a file."""
    found = _find(slug, coordinate)
    return _file(found.kernel, f"{found.coordinate}.py")


@require_safe
def trial_skill(_request: HttpRequest, slug: str, coordinate: str) -> HttpResponse:
    """Hand the skill out as a file."""
    found = _find(slug, coordinate)
    return _file(found.skill, f"{found.coordinate}.SKILL.md")


def _file(artefact: Artefact | None, name: str) -> HttpResponse:
    """Never shown in the browser: what a model wrote is downloaded, not opened."""
    if artefact is None:
        raise Http404(f"{name} does not exist (yet)")
    response = HttpResponse(artefact.text, content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _find(slug: str, coordinate: str) -> Trial:
    try:
        place = Coordinate.parse(coordinate)
        return Trial.objects.select_related("entry", "problem", "run", "kernel", "skill").get(
            entry__slug=slug,
            problem=place.problem,
            replicate=place.replicate,
            arm=place.arm,
        )
    except (ValueError, Trial.DoesNotExist) as error:
        raise Http404(str(error)) from error


def _page(slug: str, coordinate: str) -> TrialPage:
    found = _find(slug, coordinate)
    submissions = [_graded(row) for row in found.own_submissions]
    events = found.own_events.exclude(kind__in=("heartbeat", "submission"))
    newest = found.own_events.order_by("-sequence").first()
    elapsed_sec = newest.elapsed_sec if newest else None
    n_counted = sum(item.submission.counted for item in submissions)
    return TrialPage(
        trial=found,
        mark=marks.of_trial(found),
        state=states.sentence(found),
        is_over=found.status in (Trial.Status.GRADED, Trial.Status.SKIPPED, Trial.Status.FAILED),
        submissions=submissions,
        timeline=_timeline(submissions, found),
        turns=[_turn(event) for event in reversed(events.order_by("-sequence")[:TURNS_SHOWN])],
        n_turns=events.count(),
        n_submissions_left=max(0, found.run.submission_limit - n_counted),
        elapsed_sec=elapsed_sec,
        left_sec=None if elapsed_sec is None else max(0.0, found.run.budget_sec - elapsed_sec),
        pane=pane("kernel", "Final kernel", found),
        skill=skill_pane(found),
    )


def _graded(row: Submission) -> Graded:
    return Graded(row, marks.of_outcome(row.outcome), str(row.verdict.get("message", "")))


def _timeline(submissions: list[Graded], found: Trial) -> Timeline | None:
    points = [
        Point(item.submission.number, item.submission.elapsed_sec, item.submission.speedup)
        for item in submissions
    ]
    return timeline(points, found.wall_sec or found.run.budget_sec)


def _turn(event: Event) -> Turn:
    body = event.body if isinstance(event.body, dict) else {}
    parts = [str(body.get("text") or ""), *map(_call, body.get("tool_calls") or [])]
    text = "\n".join(part for part in parts if part)
    shown = text[:TURN_LIMIT_CHARS]
    speaker = str(body.get("role") or event.kind)
    glance = texts.visible(shown.strip().partition("\n")[0])
    return Turn(event, speaker, texts.plain_lines(shown), glance, len(text) - len(shown))


def _call(call: Any) -> str:
    """Write a tool call in one line of JSON, whatever shape it was recorded in."""
    if not isinstance(call, dict):
        return f"→ {call}"
    arguments = call.get("arguments", {})
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"→ {call.get('name', 'tool')} {written}"
