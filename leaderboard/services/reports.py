"""Write down what comes home from attempts, once: events on the way and the final report."""

import logging
import math
from typing import Any

from django.db import transaction
from django.utils import timezone

from leaderboard.models import Artefact, Event, Submission, Trial
from leaderboard.services import leases
from leaderboard.services.texts import storable, storable_count, storable_json
from runner.messages import AttemptEvent, AttemptReport, Usage, Verdict
from runner.protocol import EndReason, Outcome

logger = logging.getLogger(__name__)


@transaction.atomic
def record_event(event: AttemptEvent) -> bool:
    """Store an event and extend its trial's lease; return whether it was taken.

    Safe to repeat. An event that overtakes or follows its own attempt's report is kept; one with
    another attempt's token is not.

    Raises:
        ValueError: a submission's body lacks something.
    """
    is_held = leases.extend(event.trial_id, event.lease_token, now=timezone.now())
    if not is_held and not _is_own(event):
        logger.info("event %s of trial %s ignored: stale", event.sequence, event.trial_id)
        return False
    if event.kind == "submission":
        _keep_submission(event)
    elif event.kind != "heartbeat":
        Event.objects.get_or_create(
            trial_id=event.trial_id,
            lease_token=event.lease_token,
            sequence=event.sequence,
            defaults={
                "kind": event.kind,
                "elapsed_sec": event.elapsed_sec,
                "body": storable_json(event.body),
            },
        )
    return True


@transaction.atomic
def record_report(report: AttemptReport) -> Trial:
    """Store an attempt's verdict, or send its trial round again; return the trial.

    Safe to repeat, for the broker may deliver a report twice: only a report whose token holds the
    RUNNING trial writes. A fault of the host is no result: the trial goes back to its queue, and
    fails after MAX_TRIES.

    Raises:
        Trial.DoesNotExist: no trial was planned under the report's id.
    """
    now = timezone.now()
    is_held = leases.extend(report.trial_id, report.lease_token, now=now)
    trial = Trial.objects.select_related("entry", "run", "problem").get(pk=report.trial_id)
    if not is_held:
        logger.warning("report for %s ignored: it is %s, or stale", trial, trial.status)
        return trial
    verdict = report.verdict
    fault = _fault(report)
    if fault is not None or verdict is None:
        leases.give_back(trial, reason=storable(fault or ""), now=now)
    else:
        Trial.objects.filter(
            pk=trial.pk, status=Trial.Status.RUNNING, lease_token=report.lease_token
        ).update(
            status=Trial.Status.GRADED,
            lease_until=None,
            ended_at=now,
            reason="",
            **_result(report, verdict),
        )
    trial.refresh_from_db()
    return trial


def _is_own(event: AttemptEvent) -> bool:
    """Say whether the trial ended with this event's attempt."""
    return Trial.objects.filter(
        pk=event.trial_id, lease_token=event.lease_token, status=Trial.Status.GRADED
    ).exists()


def _keep_submission(event: AttemptEvent) -> None:
    try:
        number, counted = event.body["number"], event.body["counted"]
        kernel, verdict = event.body["kernel"], Verdict.from_json(event.body["verdict"])
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"submission event {event.sequence} of trial {event.trial_id} lacks {error};"
            " its body holds number, kernel, verdict and counted"
        ) from error
    is_timed = verdict.passed
    Submission.objects.get_or_create(
        trial_id=event.trial_id,
        lease_token=event.lease_token,
        number=number,
        defaults={
            "kernel": Artefact.objects.keep(storable(kernel)),
            "outcome": verdict.outcome,
            "kernel_ms": verdict.kernel_ms if is_timed else None,
            "eager_ms": verdict.eager_ms if is_timed else None,
            "verdict": storable_json(verdict.to_json()),
            "counted": counted,
            "elapsed_sec": event.elapsed_sec,
        },
    )


def _fault(report: AttemptReport) -> str | None:
    """Return why the report is no result, in words; None when it is one."""
    verdict = report.verdict
    if report.end_reason is EndReason.INFRASTRUCTURE:
        return report.detail or "its host failed"
    if verdict is None:
        return report.detail or "its kernel could not be graded"
    if verdict.outcome is Outcome.INFRASTRUCTURE:
        return verdict.message or "its grader failed"
    if verdict.passed and not (_is_time(verdict.kernel_ms) and _is_time(verdict.eager_ms)):
        return (
            f"the verdict says passed, with times {verdict.kernel_ms} and {verdict.eager_ms} ms;"
            " a pass needs both, finite and above zero"
        )
    return None


def _is_time(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def _result(report: AttemptReport, verdict: Verdict) -> dict[str, Any]:
    """Return the columns of a graded trial."""
    return {
        "end_reason": report.end_reason,
        "end_detail": storable(report.detail),
        "kernel": _kept(report.kernel),
        "skill": _kept(report.skill),
        "outcome": verdict.outcome,
        "kernel_ms": verdict.kernel_ms if verdict.passed else None,
        "eager_ms": verdict.eager_ms if verdict.passed else None,
        "verdict": storable_json(verdict.to_json()),
        "environment": storable_json(report.environment),
        **_used(report.usage),
    }


def _kept(text: str | None) -> Artefact | None:
    return None if text is None else Artefact.objects.keep(storable(text))


def _used(usage: Usage) -> dict[str, Any]:
    return {
        "n_turns": storable_count(usage.n_turns),
        "n_input_tokens": storable_count(usage.n_input_tokens),
        "n_cached_tokens": storable_count(usage.n_cached_tokens),
        "n_output_tokens": storable_count(usage.n_output_tokens),
        "wall_sec": usage.wall_sec,
    }
