"""One trial's page in each of its states, its transcript and its files."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from leaderboard.models import Artefact, Event, Trial
from leaderboard.views.trials import TURN_LIMIT_CHARS, TURNS_SHOWN
from runner.protocol import Arm, Outcome
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db

ADDRESS = "/entries/model-a/trials/p02_r1_solo_tirx/"


def trial(result: float | Outcome | None = None, **fields: object) -> Trial:
    """The trial at ADDRESS: graded with this result, or queued."""
    return factories.make_trial(
        factories.make_run(), factories.make_problem(), Arm.SOLO_TIRX, result, **fields
    )


def running() -> Trial:
    """The trial at ADDRESS, running for four minutes of its forty."""
    now = timezone.now()
    found = trial(
        status=Trial.Status.RUNNING,
        lease_token="e" * 32,
        lease_until=now + timedelta(seconds=90),
        started_at=now,
    )
    say(found, 7, "Trying vector loads.", elapsed_sec=240)
    return found


def say(found: Trial, sequence: int, text: str, *, elapsed_sec: float = 1.0) -> None:
    Event.objects.create(
        trial=found,
        lease_token=found.lease_token,
        sequence=sequence,
        kind="turn",
        elapsed_sec=elapsed_sec,
        body={
            "role": "assistant",
            "text": text,
            "tool_calls": [{"name": "run_shell", "arguments": {"command": "cat TASK.md"}}],
        },
    )


@pytest.mark.parametrize("coordinate", ["p02_r1_solo_cuda", "p02_r9_solo_tirx", "nonsense"])
def test_a_coordinate_without_a_trial_is_not_found(client: Client, coordinate: str) -> None:
    trial()
    assert client.get(f"/entries/model-a/trials/{coordinate}/").status_code == 404


def test_a_queued_trial_says_how_many_are_ahead(client: Client) -> None:
    first = trial()
    factories.make_trial(first.run, first.problem, Arm.SOLO_CUTEDSL)
    assert "In the queue: next in line." in text_of(client, ADDRESS)
    later = "/entries/model-a/trials/p02_r1_solo_cutedsl/"
    assert "In the queue: 1 trial ahead of it." in text_of(client, later)


def test_a_running_trial_shows_what_is_left_of_its_budget(client: Client) -> None:
    factories.make_submission(running())
    text = text_of(client, ADDRESS)
    assert "Time used 4 min" in text
    # 2,400 s − 240 s = 2,160 s.
    assert "Time left 36 min" in text
    assert "Submissions left 9 of 10" in text


def test_a_silent_worker_is_said_to_be_silent(client: Client) -> None:
    found = running()
    Trial.objects.filter(pk=found.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert "has gone silent" in text_of(client, ADDRESS)


def test_a_poll_gets_304_until_something_happens_and_stops_at_the_end(client: Client) -> None:
    found = running()
    first = client.get(f"{ADDRESS}progress/")
    assert "data-live-done" not in first.content.decode()
    headers = {"If-None-Match": first.headers["ETag"]}
    assert client.get(f"{ADDRESS}progress/", headers=headers).status_code == 304
    factories.make_submission(found)
    assert client.get(f"{ADDRESS}progress/", headers=headers).status_code == 200
    Trial.objects.filter(pk=found.pk).update(status=Trial.Status.FAILED, reason="the host broke")
    last = client.get(f"{ADDRESS}progress/", headers=headers).content.decode()
    assert "data-live-done" in last
    assert "The host broke" in last


def test_submissions_are_listed_and_drawn_in_order(client: Client) -> None:
    found = trial(2.0)
    factories.make_submission(found, 1, Outcome.REFUSED)
    factories.make_submission(found, 2, 1.25)
    html = html_of(client, ADDRESS)
    text = text_of(client, ADDRESS)
    assert "refused before evaluation not counted" in text
    assert "passed 800 µs 1.25 ×" in text
    assert html.count("<title>Submission") == 2


def test_a_lost_try_leaves_no_submission_behind(client: Client) -> None:
    found = trial(2.0)
    submission = factories.make_submission(found, 1, 1.25)
    type(submission).objects.update(lease_token="0" * 32)
    assert "It sent no kernel for feedback." in text_of(client, ADDRESS)


def test_the_transcript_is_inert_and_shows_tool_calls(client: Client) -> None:
    say(trial(2.0), 1, "<script>alert(1)</script> \u200bhidden")
    html = html_of(client, ADDRESS)
    assert "<script>alert" not in html
    assert "⟦U+200B⟧hidden" in html
    assert "→ run_shell" in html
    assert "cat TASK.md" in html


def test_a_long_transcript_is_capped_and_says_so(client: Client) -> None:
    found = trial(2.0)
    for sequence in range(1, TURNS_SHOWN + 6):
        say(found, sequence, f"turn number {sequence}.")
    text = text_of(client, ADDRESS)
    assert f"The last {TURNS_SHOWN} of {TURNS_SHOWN + 5} turns and notes." in text
    assert "turn number 5." not in text
    assert "turn number 6." in text


def test_a_long_turn_is_cut_and_says_by_how_much(client: Client) -> None:
    found = trial(2.0)
    Event.objects.create(
        trial=found,
        lease_token=found.lease_token,
        sequence=1,
        kind="note",
        elapsed_sec=1,
        body={"text": "x" * (TURN_LIMIT_CHARS + 1_234)},
    )
    assert "1,234 more characters are left out." in text_of(client, ADDRESS)


@pytest.mark.parametrize("body", [{}, [], {"tool_calls": ["odd"]}, {"text": None, "role": 3}])
def test_an_event_of_any_shape_can_be_shown(client: Client, body: object) -> None:
    found = trial(2.0)
    Event.objects.create(
        trial=found,
        lease_token=found.lease_token,
        sequence=1,
        kind="turn",
        elapsed_sec=1,
        body=body,
    )
    assert client.get(ADDRESS).status_code == 200


def test_a_verdict_shows_its_first_mismatch_and_findings(client: Client) -> None:
    found = trial(Outcome.WRONG_VALUES)
    verdict = dict(found.verdict or {})
    verdict["mismatch"] = {
        "path": "output[0]",
        "reason": "error 3.2 over allowance 0.1",
        "n_wrong": 7,
        "n_elements": 1_024,
    }
    verdict["findings"] = ["imports ctypes"]
    Trial.objects.filter(pk=found.pk).update(verdict=verdict)
    text = text_of(client, ADDRESS)
    assert (
        "First mismatch at output[0] : error 3.2 over allowance 0.1 (7 of 1,024 elements)." in text
    )
    assert "Finding: imports ctypes" in text


def test_kernel_and_skill_are_downloads_and_never_pages(client: Client) -> None:
    found = trial(2.0)
    Trial.objects.filter(pk=found.pk).update(
        kernel=Artefact.objects.keep("<b>kernel</b>\n"),
        skill=Artefact.objects.keep("<b>skill</b>\n"),
    )
    for name, text in (("kernel.py", "<b>kernel</b>\n"), ("SKILL.md", "<b>skill</b>\n")):
        response = client.get(f"{ADDRESS}{name}")
        assert response.content.decode() == text
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.headers["Content-Disposition"].startswith("attachment;")
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_file_that_does_not_exist_yet_is_not_found(client: Client) -> None:
    trial()
    assert client.get(f"{ADDRESS}kernel.py").status_code == 404
    assert client.get(f"{ADDRESS}SKILL.md").status_code == 404
