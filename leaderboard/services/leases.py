"""Leases of running trials: kept alive by every message, and taken back when they run out."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from leaderboard.models import Entry, Trial
from runner.protocol import MAX_TRIES

logger = logging.getLogger(__name__)


def extend(trial_id: int, lease_token: str, *, now: datetime) -> bool:
    """Take a sign of life; return whether the token still holds the trial.

    The first one says that the attempt has begun: from here on a loss counts as a try.
    """
    held = Trial.objects.filter(pk=trial_id, status=Trial.Status.RUNNING, lease_token=lease_token)
    held.filter(started_at__isnull=True).update(started_at=now, n_tries=F("n_tries") + 1)
    return bool(held.update(lease_until=now + timedelta(seconds=settings.LEASE_SEC)))


def give_back(trial: Trial, *, reason: str, now: datetime) -> bool:
    """Return a lost trial to its queue, or fail it after MAX_TRIES; say whether it was moved.

    An order that no worker ever took costs no try: nothing was attempted.
    """
    is_last = trial.started_at is not None and trial.n_tries >= MAX_TRIES
    if is_last:
        moves = {
            "status": Trial.Status.FAILED,
            "ended_at": now,
            "reason": f"gave up after {trial.n_tries} tries: {reason}"[:500],
        }
    else:
        moves = {
            "status": Trial.Status.QUEUED,
            "queued_at": now,
            "started_at": None,
            "lease_token": "",
            "reason": reason[:500],
        }
    moved = Trial.objects.filter(
        pk=trial.pk, status=Trial.Status.RUNNING, lease_token=trial.lease_token
    ).update(lease_until=None, **moves)
    if moved:
        logger.warning("%s is %s again: %s", trial, moves["status"], reason)
    return bool(moved)


@transaction.atomic
def reap(now: datetime) -> list[Entry]:
    """Take back every trial whose lease ran out; return the entries concerned.

    Safe to repeat and to run twice at once: the token decides who moves a trial.
    """
    lost = Trial.objects.filter(status=Trial.Status.RUNNING, lease_until__lt=now)
    entries = {}
    for trial in lost.select_related("entry", "problem").order_by("pk"):
        began = trial.started_at is not None
        reason = "its host was not heard of any more" if began else "no worker took its order"
        if give_back(trial, reason=reason, now=now):
            entries[trial.entry_id] = trial.entry
    return list(entries.values())


@transaction.atomic
def hand_back_all(now: datetime) -> int:
    """Return every running trial to its queue; say how many.

    For whoever has just stopped all hosts on purpose: the try that was under way is not charged.
    """
    running = Trial.objects.filter(status=Trial.Status.RUNNING)
    running.filter(started_at__isnull=False).update(n_tries=F("n_tries") - 1)
    return running.update(
        status=Trial.Status.QUEUED,
        queued_at=now,
        started_at=None,
        lease_token="",
        lease_until=None,
        reason="its host was stopped on purpose",
    )
