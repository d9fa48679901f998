"""The whole loop, order out to report home: in one process, over files, and over Redis."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leaderboard.models import Ranking, Trial, transfers_of
from leaderboard.services import entries, problems, runs
from runner.demo.server import Behaviour, DemoServer
from tests.rooms import Rooms, free_port

ENTER = """
from leaderboard.services import entries
entries.enter(
    owner=None, name="Demo", provider="{provider}", base_url="{base_url}",
    model_id="demo-scripted", api_key="any", is_scripted=True,
)
"""
UNDER_WAY = "select count(*) from leaderboard_trial where status in ('waiting','queued','running')"
GRADED = "select count(*) from leaderboard_trial where status = 'graded'"


@pytest.fixture
def demo() -> Iterator[DemoServer]:
    """The scripted model, in a thread."""
    with DemoServer("127.0.0.1", 0, Behaviour()) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_the_loop_closes_in_one_process(demo: DemoServer, in_place, monkeypatch, settings) -> None:
    import runner.tasks  # noqa: F401 - a task runs in place only once it is registered

    monkeypatch.setenv("MKB_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("MKB_SEAL_PRIVATE_KEY", settings.SEAL_PRIVATE_KEY)
    problems.sync()
    entry = entries.enter(
        owner=None,
        name="Demo",
        provider="openai",
        base_url=f"{demo.base_url}/v1",
        model_id="demo-scripted",
        api_key="any",
        is_scripted=True,
    )
    entries.check(entry)
    entry.refresh_from_db()
    assert entry.preflight == "passed", entry.preflight_summary
    run = runs.start(entry, problems=[2], submission_limit=1)
    trials = list(run.trials.order_by("pk"))
    assert {trial.status for trial in trials} <= {"graded", "skipped"}, [
        (trial.status, trial.reason) for trial in trials
    ]
    for trial in trials:
        if trial.status == Trial.Status.GRADED:
            assert trial.kernel is not None
            assert trial.own_submissions.count() == 1
            assert trial.own_events.exists()
            assert trial.n_input_tokens is not None
    for transfer in transfers_of(entry):
        assert transfer.ratio is not None
        assert transfer.conditioned.received_skill == transfer.source.skill
    assert [row.n for row in Ranking.objects.filter(entry=entry)] == [1, 1]


@pytest.mark.e2e
def test_a_problem_goes_round_over_the_filesystem_broker(tmp_path: Path) -> None:
    with Rooms(tmp_path) as rooms:
        rooms.script(ENTER.format(provider="openai", base_url=rooms.start_demo()))
        rooms.start_workers()
        rooms.manage("start_run", "demo", "--problems", "2", "--submissions", "2")
        rooms.wait_until(lambda: rooms.ask(UNDER_WAY) == [(0,)], "four trials to end")
        trials = rooms.ask("select arm, status, reason, outcome from leaderboard_trial order by id")
        assert [arm for arm, *_ in trials] == [
            "solo_cutedsl",
            "solo_tirx",
            "cutedsl2tirx_skill",
            "tirx2cutedsl_skill",
        ]
        assert {status for _, status, *_ in trials} <= {"graded", "skipped"}, trials
        submitted = "select count(distinct trial_id) from leaderboard_submission"
        (n_graded,) = rooms.ask(GRADED)[0]
        assert rooms.ask(submitted) == [(n_graded,)]
        published = (
            "select direction, n, lift is not null from leaderboard_ranking order by direction"
        )
        rooms.wait_until(
            lambda: rooms.ask(published) == [("cutedsl2tirx", 1, 1), ("tirx2cutedsl", 1, 1)],
            "both rankings to be published",
            limit_sec=60,
        )


@pytest.mark.e2e
def test_a_killed_agent_hosts_attempt_is_made_again(tmp_path: Path) -> None:
    with Rooms(tmp_path) as rooms:
        rooms.environment["MKB_MAX_RUNNING"] = "1"
        rooms.script(ENTER.format(provider="openai", base_url=rooms.start_demo()))
        rooms.start_workers()
        rooms.manage("start_run", "demo", "--problems", "2", "--submissions", "1")
        first = "select status, n_tries from leaderboard_trial order by id limit 1"
        rooms.wait_until(lambda: rooms.ask(first) == [("running", 1)], "the attempt to begin")
        rooms.kill("agent")
        rooms.script(
            """
            from django.utils import timezone
            from leaderboard.models import Trial
            Trial.objects.filter(status="running").update(lease_until=timezone.now())
            """
        )
        rooms.start_worker("runner.worker", "agent", "--pool", "threads")
        # The record keeper's own sweep finds the lost lease and sends the order again.
        rooms.wait_until(lambda: rooms.ask(first) == [("graded", 2)], "the second try's report")
        tokens = "select count(distinct lease_token) from leaderboard_event where trial_id = 1"
        assert rooms.ask(tokens) == [(2,)]


@pytest.mark.e2e
def test_an_endpoint_and_a_solo_go_round_over_redis(tmp_path: Path) -> None:
    port = free_port()
    with Rooms(tmp_path, broker=f"redis://127.0.0.1:{port}/0") as rooms:
        rooms.start("redis", "redis-server", "--port", str(port), "--save", "")
        rooms.script(ENTER.format(provider="anthropic", base_url=rooms.start_demo()[: -len("/v1")]))
        rooms.start_workers()
        rooms.script(
            """
            from leaderboard.models import Entry
            from leaderboard.services import entries
            entries.check(Entry.objects.get())
            """
        )
        asked = "select preflight, preflight_steps from leaderboard_entry"
        rooms.wait_until(lambda: rooms.ask(asked)[0][0] != "checking", "the pre-flight's answer")
        preflight, steps = rooms.ask(asked)[0]
        assert preflight == "passed", steps
        assert json.loads(steps)
        rooms.manage("start_run", "demo", "--problems", "2", "--submissions", "1")
        rooms.wait_until(lambda: rooms.ask(GRADED)[0][0] >= 1, "the first solo's report")
        assert not list((tmp_path / "broker").rglob("*.msg"))
