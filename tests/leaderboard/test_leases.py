"""Lost attempts: taken back when their lease runs out, and never more often than allowed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboard.models import Trial
from leaderboard.services import leases, runs
from runner.protocol import MAX_TRIES
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db
SOON = timedelta(seconds=30)
LATE = timedelta(hours=1)


@pytest.fixture
def trial() -> Trial:
    factories.make_problem()
    runs.start(factories.make_entry(), problems=[2])
    runs.dispatch_ready()
    return Trial.objects.get(arm="solo_tirx")


def test_a_lease_that_holds_is_left_alone(trial: Trial) -> None:
    now = timezone.now()
    leases.extend(trial.pk, trial.lease_token, now=now)
    assert leases.reap(now + SOON) == []
    trial.refresh_from_db()
    assert trial.status == "running"


def test_a_lost_attempt_goes_back_to_its_queue_and_gets_a_new_token(trial: Trial) -> None:
    lost = trial.lease_token
    leases.extend(trial.pk, lost, now=timezone.now())
    assert leases.reap(timezone.now() + LATE) == [trial.entry]
    trial.refresh_from_db()
    assert (trial.status, trial.lease_token, trial.lease_until) == ("queued", "", None)
    assert trial.reason == "its host was not heard of any more"
    runs.dispatch_ready()
    trial.refresh_from_db()
    assert trial.status == "running"
    assert trial.lease_token not in ("", lost)
    assert not leases.extend(trial.pk, lost, now=timezone.now())


def test_a_poison_trial_fails_after_its_last_try(trial: Trial) -> None:
    for _ in range(MAX_TRIES):
        trial.refresh_from_db()
        assert trial.status == "running"
        leases.extend(trial.pk, trial.lease_token, now=timezone.now())
        leases.reap(timezone.now() + LATE)
        runs.dispatch_ready()
    trial.refresh_from_db()
    assert (trial.status, trial.n_tries) == ("failed", 3)
    assert trial.reason == "gave up after 3 tries: its host was not heard of any more"


def test_an_order_that_no_worker_took_costs_no_try(trial: Trial) -> None:
    for _ in range(MAX_TRIES + 2):
        leases.reap(timezone.now() + LATE)
        trial.refresh_from_db()
        assert (trial.status, trial.n_tries) == ("queued", 0)
        assert trial.reason == "no worker took its order"
        runs.dispatch_ready()


def test_two_reapers_move_a_trial_once(trial: Trial) -> None:
    leases.extend(trial.pk, trial.lease_token, now=timezone.now())
    trial.refresh_from_db()
    now = timezone.now() + LATE
    assert leases.give_back(trial, reason="lost", now=now)
    assert not leases.give_back(trial, reason="lost", now=now)
