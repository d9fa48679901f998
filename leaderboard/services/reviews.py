"""A reviewer's verdict on a transfer, and what it does to the numbers."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from leaderboard.models import Review, Trial
from leaderboard.services import rankings
from leaderboard.services.refusals import Refusal
from leaderboard.services.texts import storable
from leaderboard.services.turns import take_turn
from runner.protocol import Arm

NOTE_LIMIT = 4_000


@transaction.atomic
def review(trial: Trial, *, reviewer: AbstractBaseUser, verdict: str, note: str) -> Review:
    """Sign a verdict on the transfer that ends in this conditioned trial.

    It replaces the reviewer's standing one. Everything but `clean` takes the comparison out of
    the rankings, in this transaction. Whether the account may review is the caller's to check.

    Raises:
        Refusal: a note, verdict or transfer that cannot be; or the reviewer's own entry.
    """
    note = storable(note.strip())
    if verdict not in Review.Verdict.values:
        raise Refusal(f"{verdict!r} is no verdict; choose {', '.join(Review.Verdict.values)}.")
    if not note or len(note) > NOTE_LIMIT:
        raise Refusal(f"A review says why: write a note of 1 to {NOTE_LIMIT:,} characters.")
    if Arm(trial.arm).direction is None:
        raise Refusal(f"{trial} is a solo attempt; review the transfer that uses it.")
    if trial.entry.owner_id is not None and trial.entry.owner_id == reviewer.pk:
        raise Refusal(f"{trial.entry} is your own entry; someone else has to review it.")
    if trial.status not in (Trial.Status.GRADED, Trial.Status.SKIPPED):
        raise Refusal(f"{trial} is {trial.get_status_display()}; review it once it has ended.")
    take_turn()
    standing = Review.objects.standing().filter(trial=trial, reviewer_id=reviewer.pk)
    standing.update(replaced_at=timezone.now())
    written = Review.objects.create(
        trial=trial, reviewer_id=reviewer.pk, verdict=verdict, note=note
    )
    rankings.refresh(trial.entry)
    return written
