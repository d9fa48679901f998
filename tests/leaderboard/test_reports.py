"""What comes home from an attempt: events, submissions and the report, written once."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from leaderboard.models import Artefact, Event, Submission, Trial
from leaderboard.services import leases, reports, runs
from runner.messages import AttemptEvent, AttemptReport, Usage, Verdict
from runner.protocol import MAX_TRIES, EndReason, Outcome
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def trial() -> Trial:
    """A trial whose order is out."""
    factories.make_problem()
    runs.start(factories.make_entry(), problems=[2])
    runs.dispatch_ready()
    return Trial.objects.get(arm="solo_tirx")


def event(trial: Trial, kind: str = "heartbeat", **fields: Any) -> AttemptEvent:
    values = {"lease_token": trial.lease_token, "sequence": 1, "elapsed_sec": 1.5, "body": {}}
    return AttemptEvent(trial_id=trial.pk, kind=kind, **(values | fields))


def submission(trial: Trial, verdict: Verdict, **fields: Any) -> AttemptEvent:
    body = {
        "number": 1,
        "kernel": "def solve(x): ...",
        "verdict": verdict.to_json(),
        "elapsed_sec": 61.0,
        "counted": True,
    }
    return event(trial, "submission", elapsed_sec=61.0, body=body | fields)


def report(trial: Trial, **fields: Any) -> AttemptReport:
    values: dict[str, Any] = {
        "lease_token": trial.lease_token,
        "end_reason": EndReason.FINISHED,
        "detail": "the model called finish",
        "kernel": "def solve(x): return x",
        "skill": "# Measured: 2 x",
        "verdict": factories.make_verdict(2.0),
        "usage": Usage(n_turns=7, n_input_tokens=900, n_output_tokens=None, wall_sec=12.5),
        "environment": {"isolation": "bubblewrap"},
    }
    return AttemptReport(trial_id=trial.pk, **(values | fields))


def test_the_first_sign_of_life_says_that_the_attempt_began(trial: Trial) -> None:
    assert reports.record_event(event(trial))
    trial.refresh_from_db()
    assert trial.started_at is not None
    assert trial.n_tries == 1
    began = trial.started_at
    reports.record_event(event(trial, sequence=2))
    trial.refresh_from_db()
    assert (trial.started_at, trial.n_tries) == (began, 1)


@pytest.mark.parametrize("kind", ["heartbeat", "note"])
def test_every_event_extends_the_lease(trial: Trial, settings, kind: str) -> None:
    Trial.objects.filter(pk=trial.pk).update(lease_until=timezone.now())
    before = timezone.now()
    reports.record_event(event(trial, kind))
    trial.refresh_from_db()
    assert trial.lease_until is not None
    assert trial.lease_until >= before + timedelta(seconds=settings.LEASE_SEC)


def test_a_heartbeat_leaves_no_row(trial: Trial) -> None:
    reports.record_event(event(trial))
    assert not Event.objects.exists()


def test_turns_and_notes_are_stored_once_in_their_order(trial: Trial) -> None:
    turn = event(trial, "turn", sequence=2, body={"role": "assistant", "text": "a \x00 b \ud800"})
    note = event(trial, "note", sequence=1, body={"text": "time is running out"})
    for item in (turn, note, turn):
        assert reports.record_event(item)
    assert [(row.sequence, row.kind) for row in trial.own_events] == [(1, "note"), (2, "turn")]
    # Neither NUL nor a lone surrogate can be stored everywhere.
    assert trial.own_events.last().body["text"] == "a \ufffd b \ufffd"


def test_a_submission_is_stored_once_with_kernel_and_verdict(trial: Trial) -> None:
    sent = submission(trial, factories.make_verdict(2.0))
    reports.record_event(sent)
    reports.record_event(sent)
    row = Submission.objects.get()
    assert (row.number, row.outcome, row.speedup, row.counted) == (1, "passed", 2.0, True)
    assert row.kernel.text == "def solve(x): ..."
    assert Verdict.from_json(row.verdict) == factories.make_verdict(2.0)
    assert row.elapsed_sec == 61.0


def test_a_failed_submission_has_no_speedup(trial: Trial) -> None:
    wrong = factories.make_verdict(Outcome.WRONG_VALUES, eager_ms=1.0)
    reports.record_event(submission(trial, wrong, counted=False))
    row = Submission.objects.get()
    assert (row.outcome, row.speedup, row.counted) == ("wrong_values", None, False)


def test_a_submission_without_its_kernel_is_named(trial: Trial) -> None:
    broken = event(trial, "submission", sequence=3, body={"number": 1, "counted": True})
    with pytest.raises(ValueError, match=f"submission event 3 of trial {trial.pk} lacks 'kernel'"):
        reports.record_event(broken)


def test_another_tokens_event_is_ignored(trial: Trial) -> None:
    stale = event(trial, "note", lease_token="0" * 32)
    assert not reports.record_event(stale)
    trial.refresh_from_db()
    assert not Event.objects.exists()
    assert trial.started_at is None


def test_an_event_that_its_own_report_overtook_is_kept(trial: Trial) -> None:
    reports.record_report(report(trial))
    assert reports.record_event(submission(trial, factories.make_verdict(2.0)))
    assert trial.own_submissions.count() == 1
    trial.refresh_from_db()
    assert (trial.status, trial.lease_until) == ("graded", None)


def test_a_report_grades_its_trial(trial: Trial) -> None:
    graded = reports.record_report(report(trial))
    assert (graded.status, graded.outcome, graded.speedup) == ("graded", "passed", 2.0)
    assert graded.kernel is not None
    assert graded.kernel.text == "def solve(x): return x"
    assert graded.skill is not None
    assert graded.skill.text == "# Measured: 2 x"
    assert graded.read_verdict() == factories.make_verdict(2.0)
    assert (graded.end_reason, graded.end_detail) == ("finished", "the model called finish")
    assert (graded.n_turns, graded.n_input_tokens, graded.wall_sec) == (7, 900, 12.5)
    assert (graded.n_cached_tokens, graded.n_output_tokens) == (None, None)
    assert graded.environment == {"isolation": "bubblewrap"}
    assert graded.ended_at is not None
    assert graded.lease_until is None


def test_a_second_delivery_changes_nothing(trial: Trial) -> None:
    first = reports.record_report(report(trial))
    again = reports.record_report(report(trial, verdict=factories.make_verdict(4.0)))
    assert again.speedup == 2.0
    assert again.ended_at == first.ended_at


def test_a_lost_tries_report_is_refused(trial: Trial) -> None:
    stale = report(trial)
    leases.reap(timezone.now() + timedelta(hours=1))
    runs.dispatch_ready()
    assert reports.record_report(stale).status == "running"
    trial.refresh_from_db()
    assert trial.lease_token != stale.lease_token


@pytest.mark.parametrize("outcome", [Outcome.WRONG_VALUES, Outcome.CRASH, Outcome.REFUSED])
def test_a_failed_kernel_is_a_result(trial: Trial, outcome: Outcome) -> None:
    verdict = factories.make_verdict(outcome, eager_ms=1.0)
    graded = reports.record_report(report(trial, verdict=verdict, kernel=None, skill=None))
    assert (graded.status, graded.outcome, graded.speedup) == ("graded", outcome, None)
    assert (graded.kernel, graded.skill) == (None, None)
    assert graded.eager_ms is None


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"end_reason": EndReason.INFRASTRUCTURE, "detail": "no sandbox"}, "no sandbox"),
    ({"verdict": None, "detail": "the endpoint refused the key"}, "the endpoint refused the key"),
    ({"verdict": None, "detail": ""}, "its kernel could not be graded"),
    (
        {"verdict": factories.make_verdict(Outcome.INFRASTRUCTURE, message="no device")},
        "no device",
    ),
    ({"verdict": factories.make_verdict(2.0, kernel_ms=None)}, "a pass needs both"),
    ({"verdict": factories.make_verdict(2.0, eager_ms=0.0)}, "a pass needs both"),
]


@pytest.mark.parametrize(("fields", "reason"), FAULTS)
def test_a_hosts_fault_sends_the_trial_round_again(
    trial: Trial, fields: dict[str, Any], reason: str
) -> None:
    back = reports.record_report(report(trial, **fields))
    assert (back.status, back.n_tries, back.lease_token) == ("queued", 1, "")
    assert reason in back.reason
    assert (back.outcome, back.verdict, back.kernel) == ("", None, None)


def test_a_trial_fails_after_its_last_try(trial: Trial) -> None:
    for n in range(1, MAX_TRIES + 1):
        trial.refresh_from_db()
        back = reports.record_report(report(trial, verdict=None, detail="no host"))
        assert back.n_tries == n
        runs.dispatch_ready()
    assert back.status == "failed"
    assert back.reason == "gave up after 3 tries: no host"
    assert back.ended_at is not None


def test_what_an_endpoint_counts_wrongly_is_unknown(trial: Trial) -> None:
    odd = Usage(n_turns=3, n_input_tokens=-5, n_cached_tokens=10**12, n_output_tokens=0)
    graded = reports.record_report(report(trial, usage=odd))
    assert (graded.n_input_tokens, graded.n_cached_tokens) == (None, None)
    assert graded.n_output_tokens == 0


def test_texts_that_no_database_takes_are_made_storable(trial: Trial) -> None:
    verdict = factories.make_verdict(Outcome.CRASH, log_tail="\x00\x00", message="\ud83d")
    graded = reports.record_report(
        report(trial, verdict=verdict, kernel="a\x00b", skill="\udfff", detail="\x00")
    )
    assert graded.kernel is not None
    assert graded.kernel.text == "a\ufffdb"
    assert graded.kernel.digest == Artefact.digest_of("a\ufffdb")
    assert graded.read_verdict().log_tail == "\ufffd\ufffd"


def test_a_report_about_no_trial_is_an_error(trial: Trial) -> None:
    unknown = AttemptReport.from_json(report(trial).to_json() | {"trial_id": 10**9})
    with pytest.raises(Trial.DoesNotExist):
        reports.record_report(unknown)
