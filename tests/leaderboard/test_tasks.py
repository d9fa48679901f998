"""The web queue's doors: messages by name in, services called in order."""

import os
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from celery import current_app
from django.db import connection
from django.utils import timezone

from leaderboard.models import Entry, Ranking, Trial
from leaderboard.services import entries, leases, runs
from runner import queues
from runner.messages import AttemptEvent, AttemptReport, PreflightReport, Usage
from runner.protocol import EndReason, Outcome
from tests.conftest import Mailroom
from tests.leaderboard import factories


@pytest.fixture
def entry() -> Entry:
    factories.make_problem()
    return factories.make_entry()


def report(trial: Trial, skill: str | None) -> AttemptReport:
    return AttemptReport(
        trial_id=trial.pk,
        lease_token=trial.lease_token,
        end_reason=EndReason.FINISHED,
        detail="",
        kernel="def solve(x): return x",
        skill=skill,
        verdict=factories.make_verdict(2.0 if skill else Outcome.CRASH),
        usage=Usage(n_turns=1),
    )


@pytest.mark.django_db
def test_reports_by_name_carry_a_problem_to_its_ranking(entry: Entry, in_place) -> None:
    runs.start(entry, problems=[2])
    runs.dispatch_ready()
    # The solo in TIRx writes no skill, so nothing goes back to CuTe DSL.
    for arm, skill in (("solo_cutedsl", "#"), ("solo_tirx", None), ("cutedsl2tirx_skill", "#")):
        trial = Trial.objects.get(arm=arm, status="running")
        queues.send(queues.RECORD_REPORT, report(trial, skill).to_json())
    statuses = dict(Trial.objects.values_list("arm", "status"))
    assert statuses.pop("tirx2cutedsl_skill") == "skipped"
    assert set(statuses.values()) == {"graded"}
    rows = {row.direction: row for row in Ranking.objects.filter(entry=entry)}
    # 2 / (1/8) - 1 = 15 there; a skip back
    assert rows["cutedsl2tirx"].lift == pytest.approx(15.0)
    assert rows["tirx2cutedsl"].lift == pytest.approx(0.0)
    assert rows["tirx2cutedsl"].n_skipped == 1


@pytest.mark.django_db
def test_an_event_and_a_preflight_answer_arrive_by_name(entry: Entry, in_place) -> None:
    runs.start(entry, problems=[2])
    runs.dispatch_ready()
    trial = Trial.objects.filter(status="running").first()
    note = AttemptEvent(trial.pk, trial.lease_token, 1, "note", 2.0, {"text": "hello"})
    queues.send(queues.RECORD_EVENT, note.to_json())
    assert trial.own_events.get().body == {"text": "hello"}
    token = entries.check(entry).preflight_token
    answer = PreflightReport(entry.pk, token, passed=True, summary="It answers.")
    queues.send(queues.RECORD_PREFLIGHT, answer.to_json())
    entry.refresh_from_db()
    assert entry.preflight_summary == "It answers."


@pytest.mark.django_db
def test_a_sweep_does_what_lost_workers_left_undone(entry: Entry, in_place) -> None:
    runs.start(entry, problems=[2])
    runs.dispatch_ready()
    lost = Trial.objects.get(arm="solo_tirx")
    leases.extend(lost.pk, lost.lease_token, now=timezone.now() - timedelta(hours=1))
    # Another entry's last report was stored, but its ranking never refreshed.
    other = factories.make_entry("Model B")
    factories.make_replicate(factories.make_run(other), factories.make_problem())
    queues.send(queues.SWEEP, {})
    token = lost.lease_token
    lost.refresh_from_db()
    assert (lost.status, lost.n_tries) == ("running", 1)
    assert lost.lease_token != token
    assert Ranking.objects.filter(entry=other, n=1).count() == 2


@pytest.mark.django_db
def test_a_message_that_cannot_be_read_changes_nothing(entry: Entry, in_place) -> None:
    runs.start(entry, problems=[2])
    for task in (queues.RECORD_REPORT, queues.RECORD_EVENT, queues.RECORD_PREFLIGHT):
        done = queues.send(task, {"nonsense": 1})
        assert isinstance(done.result, ValueError)
        assert "has no field nonsense" in str(done.result)
    assert not Trial.objects.filter(n_tries__gt=0).exists()


@pytest.mark.django_db
def test_hosts_stopped_on_purpose_are_charged_no_try(entry: Entry) -> None:
    runs.start(entry, problems=[2])
    runs.dispatch_ready()
    begun = Trial.objects.get(arm="solo_tirx")
    leases.extend(begun.pk, begun.lease_token, now=timezone.now())
    assert leases.hand_back_all(timezone.now()) == 2
    begun.refresh_from_db()
    assert (begun.status, begun.n_tries, begun.started_at) == ("queued", 0, None)


def test_every_thread_sends_to_the_sites_broker(mailroom: Mailroom) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(current_app.main))
    thread.start()
    thread.join()
    assert found == ["mkb_site"]


RACE = """
    import os, sys, django
    django.setup()
    from leaderboard.models import Trial
    from leaderboard.services import runs
    from tests.leaderboard import factories

    if sys.argv[1] == "plan":
        for number in (2, 25, 36):
            factories.make_problem(number)
        runs.start(factories.make_entry(), problems=[2, 25, 36])
        Trial.objects.filter(status="running").update(status="queued", lease_token="")
    elif sys.argv[1] == "ring":
        print("ready", flush=True)
        sys.stdin.readline()
        runs.dispatch_ready()
    else:
        print(*sorted(Trial.objects.filter(status="running").values_list("lease_token", flat=True)))
"""


def _database(folder: Path) -> str:
    """A database that other processes can reach: a file, or the test's own on a server."""
    of = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite://{folder}/race.sqlite3"
    login = f"{of['USER']}:{of['PASSWORD']}" if of["PASSWORD"] else of["USER"]
    return f"postgresql://{login}@{of['HOST']}:{of['PORT']}/{of['NAME']}"


@pytest.mark.django_db(transaction=True)
def test_doorbells_that_ring_at_once_send_each_order_once(tmp_path: Path) -> None:
    environment = os.environ | {
        "MKB_DATA": str(tmp_path),
        "MKB_DATABASE": _database(tmp_path),
        "DJANGO_SETTINGS_MODULE": "mkb_site.settings.test",
    }
    script = [sys.executable, "-c", textwrap.dedent(RACE)]
    migrate = [sys.executable, "manage.py", "migrate", "-v0"]
    subprocess.run(migrate, env=environment, check=True)
    subprocess.run([*script, "plan"], env=environment, check=True)
    for letter in (tmp_path / "broker/messages").iterdir():
        letter.unlink()
    pipe = subprocess.PIPE
    ringers = [
        subprocess.Popen([*script, "ring"], env=environment, stdin=pipe, stdout=pipe, text=True)
        for _ in range(4)
    ]
    for ringer in ringers:
        assert ringer.stdout.readline() == "ready\n"
    for ringer in ringers:
        ringer.stdin.write("\n")
        ringer.stdin.flush()
    assert [ringer.wait(60) for ringer in ringers] == [0, 0, 0, 0]
    for ringer in ringers:
        ringer.communicate()
    told = subprocess.run(
        [*script, "tell"], env=environment, check=True, capture_output=True, text=True
    )
    # MAX_RUNNING is 3: four doorbells, three tokens, three letters.
    assert len(set(told.stdout.split())) == 3
    assert len(list((tmp_path / "broker/messages").iterdir())) == 3
