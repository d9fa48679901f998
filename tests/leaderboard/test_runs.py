"""Starting a run, and sending its trials out in order."""

import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboard.models import Entry, Problem, Ranking, Run, Trial
from leaderboard.services import problems, runs
from leaderboard.services.refusals import Refusal
from problems import catalog
from runner import queues
from runner.messages import AttemptOrder
from runner.protocol import Arm, Outcome
from tests.conftest import Mailroom
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db

PLAN = ["solo_cutedsl", "solo_tirx", "cutedsl2tirx_skill", "tirx2cutedsl_skill"]


@pytest.fixture
def entry() -> Entry:
    for number in (2, 25, 36):
        factories.make_problem(number)
    return factories.make_entry()


def coordinates(run: Run) -> list[str]:
    return [str(trial) for trial in run.trials.order_by("pk")]


def in_flight() -> list[str]:
    return [str(trial) for trial in Trial.objects.filter(status="running").order_by("pk")]


def finish(trial: Trial, **fields: object) -> None:
    """Put a trial where a good report would."""
    values: dict[str, object] = {
        "status": "graded",
        "outcome": "passed",
        "kernel_ms": 0.5,
        "eager_ms": 1.0,
        "verdict": factories.make_verdict(2.0).to_json(),
        "ended_at": timezone.now(),
        "lease_until": None,
    }
    Trial.objects.filter(pk=trial.pk).update(**(values | fields))


def test_a_run_plans_four_trials_a_problem_solos_first(entry: Entry) -> None:
    run = runs.start(entry, problems=[25, 2, 25])
    assert coordinates(run) == [f"p{n}_r1_{arm}" for n in ("02", "25") for arm in PLAN]
    assert [trial.status for trial in run.trials.order_by("pk")][:4] == [
        "queued",
        "queued",
        "waiting",
        "waiting",
    ]
    assert {trial.problem_fingerprint for trial in run.trials.filter(problem=2)} == {
        Problem.objects.get(number=2).fingerprint
    }


def test_replicates_count_on_from_earlier_runs_of_the_problem(entry: Entry) -> None:
    first = runs.start(entry, problems=[2], n_replicates=2)
    first.trials.update(status="failed")
    second = runs.start(entry, problems=[2, 25], n_replicates=2)
    replicates = second.trials.order_by("pk").values_list("problem", "replicate").distinct()
    assert sorted(set(replicates)) == [(2, 3), (2, 4), (25, 1), (25, 2)]


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", "smoke"), ("h200", "full"), (None, "smoke")]
)
def test_the_workload_follows_the_device(
    entry: Entry, settings, device: str | None, expected: str
) -> None:
    settings.DEVICES = ["cpu", "h200"]
    run = runs.start(entry, problems=[2], device=device)
    assert run.workload == expected
    assert run.device == (device or "cpu")


def test_a_planned_run_is_on_the_board_at_once_with_unknown_numbers(entry: Entry) -> None:
    runs.start(entry, problems=[2, 25], n_replicates=3)
    rows = Ranking.objects.filter(entry=entry)
    assert {(row.n_planned, row.n, row.lift) for row in rows} == {(2, 0, None)}
    assert rows.count() == 2


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"problems": []}, "No problem is chosen"),
        ({"problems": [2, 7, 99]}, "no problem 7, 99; the catalogue has 2, 25, 36"),
        ({"problems": [2], "device": "abacus"}, "No worker here runs on device 'abacus'"),
        ({"problems": [2], "workload": "heldout_1"}, "choose smoke or full"),
        ({"problems": [2], "n_replicates": 0}, "0 replicates cannot be"),
        ({"problems": [2], "n_replicates": 11}, "from 1 to 10"),
        ({"problems": [2], "budget_sec": 2_401}, "from 1 to 2400"),
        ({"problems": [2], "submission_limit": 0}, "0 submissions cannot be"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(entry: Entry, asked, sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        runs.start(entry, **asked)
    assert not Run.objects.exists()


def test_a_retired_problem_is_refused(entry: Entry) -> None:
    Problem.objects.filter(number=25).update(is_retired=True)
    with pytest.raises(Refusal, match="Problem 25 has left the catalogue"):
        runs.start(entry, problems=[2, 25])


def test_an_entry_without_a_key_is_refused_unless_it_is_scripted(entry: Entry) -> None:
    keyless = factories.make_entry("Keyless", sealed_key="")
    with pytest.raises(Refusal, match="Keyless has no key"):
        runs.start(keyless, problems=[2])
    scripted = factories.make_entry("Demo", sealed_key="", is_scripted=True)
    assert runs.start(scripted, problems=[2]).trials.count() == 4


def test_an_entry_runs_one_run_at_a_time(entry: Entry) -> None:
    first = runs.start(entry, problems=[2])
    with pytest.raises(Refusal, match=f"still at run {first.pk}"):
        runs.start(entry, problems=[25])


def test_the_first_orders_go_out_on_commit(
    entry: Entry, mailroom: Mailroom, django_capture_on_commit_callbacks, settings
) -> None:
    vera = factories.make_user()
    with django_capture_on_commit_callbacks(execute=True):
        run = runs.start(entry, problems=[2, 25], started_by=vera, budget_sec=60)
        assert mailroom.take(queues.AGENT) == []
    letters = mailroom.take(queues.AGENT)
    orders = [AttemptOrder.from_json(letter.payload) for letter in letters]
    assert {letter.task for letter in letters} == {queues.RUN_ATTEMPT}
    assert all(letter.expires for letter in letters)
    assert [(order.problem, order.arm) for order in orders] == [
        ("02_problem", "solo_cutedsl"),
        ("02_problem", "solo_tirx"),
        ("25_problem", "solo_cutedsl"),
    ]
    first = run.trials.get(pk=orders[0].trial_id)
    assert run.started_by == vera
    assert (first.status, first.lease_token) == ("running", orders[0].lease_token)
    assert first.started_at is None
    assert (orders[0].device, orders[0].workload) == ("cpu", "smoke")
    assert (orders[0].budget_sec, orders[0].submission_limit) == (60, 10)
    assert orders[0].problem_fingerprint == first.problem_fingerprint
    assert orders[0].endpoint.sealed_key == "sealed"
    assert orders[0].skill is None


def test_problems_finish_one_after_another(entry: Entry, settings) -> None:
    settings.MAX_RUNNING = 2
    run = runs.start(entry, problems=[2, 25])
    skill = factories.Artefact.objects.keep("# skill")
    sent = []
    while True:
        runs.dispatch_ready()
        running = list(Trial.objects.filter(status="running").order_by("pk"))
        if not running:
            break
        sent.append([str(trial) for trial in running])
        for trial in running:
            finish(trial, skill=skill)
    by_two = coordinates(run)
    assert sent == [by_two[k : k + 2] for k in range(0, 8, 2)]


def test_no_more_than_the_limit_run_at_once_over_all_entries(entry: Entry, settings) -> None:
    settings.MAX_RUNNING = 3
    other = factories.make_entry("Model B")
    runs.start(entry, problems=[2])
    runs.start(other, problems=[2])
    runs.dispatch_ready()
    assert len(in_flight()) == 3
    runs.dispatch_ready()
    assert len(in_flight()) == 3


def test_a_conditioned_trial_gets_its_sources_skill_and_nothing_else(
    entry: Entry, mailroom: Mailroom, django_capture_on_commit_callbacks
) -> None:
    run = runs.start(entry, problems=[2])
    source = run.trials.get(arm="solo_tirx")
    finish(
        source,
        skill=factories.Artefact.objects.keep("Tile by 64."),
        kernel=factories.Artefact.objects.keep("SECRET = 1"),
        outcome=Outcome.WRONG_VALUES,
        kernel_ms=None,
        eager_ms=None,
    )
    with django_capture_on_commit_callbacks(execute=True):
        runs.dispatch_ready()
    letters = mailroom.take(queues.AGENT)
    orders = {letter.payload["arm"]: letter.payload for letter in letters}
    order = AttemptOrder.from_json(orders["tirx2cutedsl_skill"])
    trial = run.trials.get(arm="tirx2cutedsl_skill")
    assert order.skill == "Tile by 64."
    assert order.skill_digest == trial.received_skill_id
    assert "SECRET" not in str(letters)
    assert run.trials.get(arm="cutedsl2tirx_skill").status == "waiting"


@pytest.mark.parametrize("skill", [None, "", " \n\t"])
def test_without_a_skill_the_conditioned_trial_is_skipped(entry: Entry, skill: str | None) -> None:
    run = runs.start(entry, problems=[2])
    kept = None if skill is None else factories.Artefact.objects.keep(skill)
    finish(run.trials.get(arm="solo_cutedsl"), skill=kept)
    assert runs.dispatch_ready() == [entry]
    skipped = run.trials.get(arm="cutedsl2tirx_skill")
    assert skipped.status == "skipped"
    assert skipped.reason == "p02_r1_solo_cutedsl wrote no skill, so nothing could be transferred"
    assert skipped.ended_at is not None
    assert runs.dispatch_ready() == []


def test_a_failed_source_fails_what_waited_for_it(entry: Entry) -> None:
    run = runs.start(entry, problems=[2])
    run.trials.filter(arm="solo_tirx").update(status="failed", reason="gave up after 3 tries")
    assert runs.dispatch_ready() == [entry]
    failed = run.trials.get(arm="tirx2cutedsl_skill")
    assert failed.status == "failed"
    assert failed.reason == "its source p02_r1_solo_tirx failed: gave up after 3 tries"


def test_replicates_wait_for_their_own_source_only(entry: Entry) -> None:
    run = runs.start(entry, problems=[2], n_replicates=2)
    skill = factories.Artefact.objects.keep("# skill")
    finish(run.trials.get(arm="solo_cutedsl", replicate=2), skill=skill)
    runs.dispatch_ready()
    waiting = run.trials.filter(arm="cutedsl2tirx_skill").order_by("replicate")
    assert [trial.status for trial in waiting] == ["waiting", "queued"]


def test_an_order_is_held_longer_than_it_lives(entry: Entry, settings) -> None:
    runs.start(entry, problems=[2])
    before = timezone.now()
    runs.dispatch_ready()
    trial = Trial.objects.filter(status="running").first()
    assert trial is not None
    assert trial.lease_until is not None
    assert trial.lease_until > before + timedelta(seconds=settings.DISPATCH_SEC)


def test_without_a_broker_trials_go_back_to_their_queue(
    entry: Entry, mailroom: Mailroom, django_capture_on_commit_callbacks, settings
) -> None:
    messages = settings.BROKER_DIR / "messages"
    messages.rename(settings.BROKER_DIR / "elsewhere")
    try:
        with django_capture_on_commit_callbacks(execute=True):
            run = runs.start(entry, problems=[2])
        assert {trial.status for trial in run.trials.all()} == {"queued", "waiting"}
    finally:
        (settings.BROKER_DIR / "elsewhere").rename(messages)
    with django_capture_on_commit_callbacks(execute=True):
        runs.dispatch_ready()
    assert len(mailroom.take(queues.AGENT)) == 2


def test_sync_creates_changes_retires_and_revives() -> None:
    two, other = catalog.all_problems()[:2]
    result = problems.sync([two, other])
    assert (result.created, result.changed, result.retired) == ((two.slug, other.slug), (), ())
    assert problems.sync([two, other]) == problems.SyncResult((), (), ())
    Problem.objects.filter(number=two.number).update(fingerprint="0" * 64)
    assert problems.sync([two]) == problems.SyncResult((), (two.slug,), (other.slug,))
    assert list(Problem.objects.current()) == [Problem.objects.get(number=two.number)]
    assert problems.sync([two, other]).changed == (other.slug,)


def test_sync_problems_prints_what_it_touched() -> None:
    out = StringIO()
    call_command("sync_problems", stdout=out)
    n = len(catalog.all_problems())
    assert f"created {catalog.find('2').slug}\n" in out.getvalue()
    assert out.getvalue().endswith(f"{n} created, 0 changed, 0 retired\n")
    row = Problem.objects.get(number=2)
    assert (row.slug, row.fingerprint) == (catalog.find("2").slug, catalog.find("2").fingerprint)


def test_start_run_prints_the_run_and_its_address(entry: Entry) -> None:
    out = StringIO()
    call_command(
        "start_run", "model-a", "--problems", "2,25", "--replicates", "2", "--device", "cpu",
        stdout=out,
    )  # fmt: skip
    run = Run.objects.get()
    assert out.getvalue() == f"run {run.pk} of Model A started: /runs/{run.pk}/\n"
    assert run.trials.count() == 2 * 2 * 4


@pytest.mark.parametrize("chosen", [(), ("--problems", "all")])
def test_start_run_takes_the_whole_catalogue_by_default(entry: Entry, chosen) -> None:
    Problem.objects.filter(number=36).update(is_retired=True)
    call_command("start_run", "model-a", *chosen, stdout=StringIO())
    numbers = Run.objects.get().trials.order_by("problem").values_list("problem", flat=True)
    assert list(numbers.distinct()) == [2, 25]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nobody"], "There is no entry 'nobody'; there are: model-a"),
        (["model-a", "--problems", "99"], "There is no problem 99"),
        (["model-a", "--problems", "two"], "'two' is no list of problem numbers"),
        (["model-a", "--device", "abacus"], "No worker here runs on device 'abacus'"),
    ],
)
def test_start_run_explains_what_cannot_be(entry: Entry, arguments, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("start_run", *arguments)


def test_start_run_exits_with_1_and_one_sentence(tmp_path) -> None:
    environment = os.environ | {
        "MKB_DATA": str(tmp_path),
        "MKB_DATABASE": f"sqlite://{tmp_path}/site.sqlite3",
        "DJANGO_SETTINGS_MODULE": "mkb_site.settings.test",
    }
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "-v0"], env=environment, check=True)
    done = subprocess.run(
        [*manage, "start_run", "nobody"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "CommandError: There is no entry 'nobody'; there are: none yet.\n"


def test_trials_of_one_coordinate_are_unique(entry: Entry) -> None:
    run = runs.start(entry, problems=[2])
    with pytest.raises(Exception, match=r"(?i)unique"):
        factories.make_trial(run, Problem.objects.get(number=2), Arm.SOLO_TIRX)
