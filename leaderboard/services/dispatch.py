"""Move trials on: from waiting to queued or skipped, and from queued to an agent host."""

import logging
import secrets
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from kombu.exceptions import ChannelError, OperationalError

from leaderboard.models import Entry, Trial
from leaderboard.services.turns import take_turn
from runner import queues
from runner.messages import AttemptOrder, Endpoint
from runner.plan import Source, Step, next_step
from runner.protocol import Arm, Direction

logger = logging.getLogger(__name__)


@transaction.atomic
def dispatch_ready() -> list[Entry]:
    """Settle waiting trials whose source has ended, then send orders while there is room.

    Trials go out in the plan's order, so that a problem's four end before the next one's begin
    and the first comparison appears early. Safe to repeat.

    Returns:
        The entries of which a trial was skipped or failed, for their numbers may have changed.
    """
    take_turn()
    now = timezone.now()
    ended = _settle_waiting(now)
    n_free = settings.MAX_RUNNING - Trial.objects.filter(status=Trial.Status.RUNNING).count()
    queued = Trial.objects.filter(status=Trial.Status.QUEUED).order_by("pk")
    for trial in queued.select_related("run", "entry", "problem", "received_skill")[
        : max(n_free, 0)
    ]:
        _dispatch(trial, now)
    return ended


def order_of(trial: Trial) -> AttemptOrder:
    """Return the order that has this trial attempted; its key is sealed, as it is in the row."""
    entry, run, skill = trial.entry, trial.run, trial.received_skill
    return AttemptOrder(
        trial_id=trial.pk,
        lease_token=trial.lease_token,
        problem=trial.problem.slug,
        problem_fingerprint=trial.problem_fingerprint,
        arm=Arm(trial.arm),
        device=run.device,
        workload=run.workload,
        endpoint=endpoint_of(entry),
        budget_sec=run.budget_sec,
        submission_limit=run.submission_limit,
        skill=skill.text if skill else None,
        skill_digest=skill.digest if skill else None,
    )


def endpoint_of(entry: Entry) -> Endpoint:
    """Return where the entry's model answers, as agent hosts are told."""
    return Endpoint(
        provider=entry.provider,
        base_url=entry.base_url,
        model_id=entry.model_id,
        sealed_key=entry.sealed_key,
    )


def _settle_waiting(now: datetime) -> list[Entry]:
    ended = {}
    for direction in Direction:
        arm = Arm.conditioned(direction)
        sources = Trial.objects.filter(
            arm=arm.source, status__in=[Trial.Status.GRADED, Trial.Status.FAILED]
        )
        same = {name: OuterRef(name) for name in ("entry", "problem", "replicate")}
        waiting = Trial.objects.filter(Exists(sources.filter(**same)), arm=arm, status="waiting")
        for trial in waiting.select_related("entry").order_by("pk"):
            source = sources.select_related("skill").siblings_of(trial).get()
            if _settle(trial, source, now) != Trial.Status.QUEUED:
                ended[trial.entry_id] = trial.entry
    return list(ended.values())


def _settle(trial: Trial, source: Trial, now: datetime) -> Trial.Status:
    """Move a trial whose source has ended on from WAITING, and return where to."""
    skill = source.skill.text if source.skill else None
    state = Source(graded=source.status == Trial.Status.GRADED, skill=skill)
    step = next_step(Arm(trial.arm), {Arm(source.arm): state})
    moves: dict[str, object] = {"ended_at": now}
    if step is Step.RUN:
        status = Trial.Status.QUEUED
        moves = {"queued_at": now, "received_skill": source.skill}
    elif step is Step.SKIP:
        status = Trial.Status.SKIPPED
        moves["reason"] = f"{source} wrote no skill, so nothing could be transferred"
    else:
        status = Trial.Status.FAILED
        moves["reason"] = f"its source {source} failed: {source.reason}"[:500]
    Trial.objects.filter(pk=trial.pk, status=Trial.Status.WAITING).update(status=status, **moves)
    return status


def _dispatch(trial: Trial, now: datetime) -> None:
    trial.lease_token = secrets.token_hex(16)
    trial.problem_fingerprint = trial.problem.fingerprint
    # The order expires first: a trial is never attempted by two orders.
    patience = timedelta(seconds=settings.DISPATCH_SEC + settings.LEASE_SEC)
    moved = Trial.objects.filter(pk=trial.pk, status=Trial.Status.QUEUED).update(
        status=Trial.Status.RUNNING,
        lease_token=trial.lease_token,
        lease_until=now + patience,
        problem_fingerprint=trial.problem_fingerprint,
        reason="",
    )
    if moved:
        transaction.on_commit(partial(_send, order_of(trial)), robust=True)


def _send(order: AttemptOrder) -> None:
    try:
        queues.send(queues.RUN_ATTEMPT, order.to_json(), expires_sec=settings.DISPATCH_SEC)
    except (OperationalError, ChannelError, OSError) as error:
        logger.warning("trial %s goes back to its queue: no broker: %s", order.trial_id, error)
        Trial.objects.filter(
            pk=order.trial_id, status=Trial.Status.RUNNING, lease_token=order.lease_token
        ).update(status=Trial.Status.QUEUED, lease_token="", lease_until=None)
