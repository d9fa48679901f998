"""What a trial is doing, and what it waits for, in words: no trial is silent."""

import datetime as dt

from django.utils import timezone

from leaderboard.models import Trial
from runner.protocol import MAX_TRIES, Arm, EndReason

_ENDS = {
    EndReason.FINISHED: "The model said that it was done.",
    EndReason.STOPPED_CALLING_TOOLS: "The model answered without calling a tool, and was stopped.",
    EndReason.OUT_OF_TIME: "The time ran out.",
    EndReason.OUT_OF_TURNS: "The turns ran out.",
    EndReason.ENDPOINT_REFUSED: "The endpoint stopped answering.",
    EndReason.INFRASTRUCTURE: "A host of ours failed.",
}


def sentence(trial: Trial) -> str:
    """Say what is known of where the trial stands; asks the database for what it waits on."""
    match trial.status:
        case Trial.Status.WAITING:
            return _waiting(trial)
        case Trial.Status.QUEUED:
            return _queued(trial)
        case Trial.Status.RUNNING:
            return _running(trial)
        case Trial.Status.SKIPPED:
            return trial.reason or "Its source wrote no skill, so there was nothing to transfer."
        case Trial.Status.FAILED:
            return trial.reason or "A host of ours failed; this is no result of the model."
    return _ENDS[EndReason(trial.end_reason)] if trial.end_reason else "Graded."


def waits_for(trial: Trial, siblings: dict[str, Trial]) -> str:
    """Say what a waiting trial waits for, given its siblings by arm; no query."""
    source_arm = Arm(trial.arm).source
    source = siblings.get(source_arm) if source_arm else None
    if source is None:
        return "Waits for its source, which is not planned yet."
    if source.status == Trial.Status.FAILED:
        return f"Waits for {source}, which failed for an infrastructure reason, to be redone."
    state = Trial.Status(source.status).label
    return f"Waits for the skill of {source}, which is {state}."


def _waiting(trial: Trial) -> str:
    siblings = Trial.objects.siblings_of(trial).select_related("problem")
    return waits_for(trial, {item.arm: item for item in siblings})


def _queued(trial: Trial) -> str:
    # Orders go out in the plan's order, which is that of the rows.
    n_ahead = Trial.objects.filter(status=Trial.Status.QUEUED, pk__lt=trial.pk).count()
    place = {0: "next in line", 1: "1 trial ahead of it"}.get(n_ahead, f"{n_ahead} trials ahead")
    again = f"; try {trial.n_tries + 1} of {MAX_TRIES}" if trial.n_tries else ""
    return f"In the queue: {place}{again}."


def _running(trial: Trial) -> str:
    if trial.lease_until and trial.lease_until < timezone.now():
        return "Its worker has gone silent; it will be sent out again."
    if trial.started_at is None:
        return "Sent out; waiting for an agent worker to take it."
    return f"Running since {trial.started_at.astimezone(dt.UTC):%H:%M} UTC."


def short(trial: Trial, siblings: dict[str, Trial]) -> str:
    """Say the same for a table of trials, without asking the database."""
    match trial.status:
        case Trial.Status.WAITING:
            return waits_for(trial, siblings)
        case Trial.Status.QUEUED:
            return (
                "In the queue." if trial.n_tries == 0 else f"Queued again: try {trial.n_tries + 1}."
            )
        case Trial.Status.RUNNING:
            return _running(trial)
    return sentence(trial)
