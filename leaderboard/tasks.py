"""The web queue's doors: decode a message, then call services in order."""

from typing import Any

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from leaderboard.services import entries, leases, rankings, reports, runs
from runner import queues
from runner.messages import AttemptEvent, AttemptReport, PreflightReport

_PATIENT: dict[str, Any] = {
    "autoretry_for": (OperationalError,),
    "retry_backoff": True,
    "retry_backoff_max": 60,
    "max_retries": 10,
}


@shared_task(name=queues.RECORD_EVENT, **_PATIENT)
def record_event(payload: dict[str, Any]) -> None:
    """Store what happened in an attempt; it extends the lease."""
    reports.record_event(AttemptEvent.from_json(payload))


@shared_task(name=queues.RECORD_REPORT, **_PATIENT)
def record_report(payload: dict[str, Any]) -> None:
    """Store a finished attempt, release the trials that waited for it, refresh the rankings.

    Every step is safe to repeat, so a crash between two of them costs only a repeat.
    """
    trial = reports.record_report(AttemptReport.from_json(payload))
    runs.dispatch_ready()
    rankings.refresh(trial.entry)


@shared_task(name=queues.RECORD_PREFLIGHT, **_PATIENT)
def record_preflight(payload: dict[str, Any]) -> None:
    """Store what an endpoint answered."""
    entries.record_preflight(PreflightReport.from_json(payload))


@shared_task(name=queues.SWEEP, **_PATIENT)
def sweep(_payload: dict[str, Any]) -> None:
    """Repeat what a lost worker or message left undone; beat rings four times a minute."""
    touched = [*leases.reap(timezone.now()), *runs.dispatch_ready(), *rankings.behind()]
    for entry in {entry.pk: entry for entry in touched}.values():
        rankings.refresh(entry)
