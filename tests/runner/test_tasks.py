"""The doors: an order in, events and exactly one report out, whatever happens in between."""

import threading
from pathlib import Path
from typing import Any

import celery
import pytest
from kombu.exceptions import OperationalError

from runner import queues, sealing, tasks
from runner.messages import AttemptEvent, AttemptOrder, AttemptReport, Endpoint
from runner.protocol import EndReason, Outcome
from tests.conftest import Letter, Mailroom
from tests.runner.attempt.scripted import PROBLEM, order
from tests.runner.endpoint.wire import openai_events, raw, serving, status

PRIVATE, PUBLIC = sealing.new_key_pair()
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch, filesystem_broker: Path) -> None:
    """An agent host: it may reach this machine, and holds the private key."""
    monkeypatch.setenv("MKB_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("MKB_SEAL_PRIVATE_KEY", PRIVATE)


def web_letters() -> list[Letter]:
    return Mailroom(celery.current_app).take(queues.WEB)


def given(base_url: str, *, key: str = "sk-vendor", **changes: Any) -> dict[str, Any]:
    endpoint = Endpoint(
        "openai", base_url, "m", sealing.seal(key, base_url=base_url, public_key=PUBLIC)
    )
    return AttemptOrder(**{**vars(order()), "endpoint": endpoint, **changes}).to_json()


def reports(letters: list[Letter]) -> list[AttemptReport]:
    return [
        AttemptReport.from_json(letter.payload)
        for letter in letters
        if letter.task == queues.RECORD_REPORT
    ]


def test_an_attempt_sends_its_turns_and_then_its_report() -> None:
    skill = '{"path": "SKILL.md", "content": "Measured: 1.2 x."}'
    turns = [
        raw(openai_events("", (("a", "write_file", skill),), USAGE)),
        raw(openai_events("", (("b", "finish", "{}"),), USAGE)),
    ]
    with serving(*turns) as wire:
        tasks.run_attempt(given(f"{wire.url}/v1"))
    assert wire.requests[0].headers["authorization"] == "Bearer sk-vendor"
    letters = web_letters()
    (report,) = reports(letters)
    assert report.end_reason is EndReason.FINISHED
    assert report.skill == "Measured: 1.2 x."
    assert report.verdict is not None
    assert report.verdict.outcome is Outcome.REFUSED
    assert report.usage.n_input_tokens == 10
    events = [
        AttemptEvent.from_json(letter.payload)
        for letter in letters
        if letter.task == queues.RECORD_EVENT
    ]
    assert sorted(event.sequence for event in events) == list(range(1, len(events) + 1))
    assert {event.lease_token for event in events} == {"lease"}
    assert "sk-vendor" not in str([letter.payload for letter in letters])


def infrastructure(payload: dict[str, Any]) -> AttemptReport:
    tasks.run_attempt(payload)
    (report,) = reports(web_letters())
    assert report.end_reason is EndReason.INFRASTRUCTURE
    assert (report.trial_id, report.lease_token, report.verdict) == (5, "lease", None)
    return report


def test_an_order_that_this_host_cannot_carry_out_is_reported_in_words() -> None:
    report = infrastructure(given("http://127.0.0.1:9/v1", problem_fingerprint="0" * 64))
    assert "update the host" in report.detail


def test_a_host_without_the_private_key_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKB_SEAL_PRIVATE_KEY")
    assert "sealing key" in infrastructure(given("http://127.0.0.1:9/v1")).detail


def test_the_private_key_may_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MKB_SEAL_PRIVATE_KEY")
    monkeypatch.setenv("MKB_SEAL_PRIVATE_KEY_FILE", str(tmp_path / "key"))
    assert "cannot be read" in infrastructure(given("http://127.0.0.1:9/v1")).detail
    (tmp_path / "key").write_text(f"{PRIVATE}\n")
    with serving(status(401)) as wire:
        tasks.run_attempt(given(f"{wire.url}/v1"))
    assert reports(web_letters())[0].end_reason is EndReason.ENDPOINT_REFUSED


def test_a_fault_that_nobody_foresaw_is_reported_without_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MKB_ALLOW_NETWORKS", "secret-text/99")
    report = infrastructure(given("http://127.0.0.1:9/v1"))
    assert report.detail == "the agent host failed with ValueError"


def test_a_private_address_that_nobody_allowed_ends_the_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MKB_ALLOW_NETWORKS")
    with serving(status(200)) as wire:
        tasks.run_attempt(given(f"{wire.url}/v1"))
    (report,) = reports(web_letters())
    assert report.end_reason is EndReason.ENDPOINT_REFUSED
    assert "public internet" in report.detail
    assert wire.requests == []


def test_a_living_attempt_beats_and_a_finished_one_is_silent() -> None:
    sent = threading.Semaphore(0)
    tell = tasks._tell

    def counting(event: AttemptEvent) -> None:
        tell(event)
        sent.release()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_tell", counting)
        with tasks._heartbeat(order(), interval_sec=0.01):
            assert sent.acquire(timeout=30)
            assert sent.acquire(timeout=30)
    letters = web_letters()
    assert len(letters) >= 2
    assert {letter.payload["kind"] for letter in letters} == {"heartbeat"}
    assert {letter.payload["lease_token"] for letter in letters} == {"lease"}
    assert not [item for item in threading.enumerate() if item.name == "heartbeat-5"]


def test_a_report_waits_for_a_broker_that_is_away(filesystem_broker: Path) -> None:
    messages = filesystem_broker / "messages"
    away = filesystem_broker / "away"
    messages.rename(away)
    messages.write_text("in the way")
    pauses: list[float] = []

    def back_after_two(pause_sec: float) -> None:
        pauses.append(pause_sec)
        if len(pauses) == 2:
            messages.unlink()
            away.rename(messages)

    tasks._send_surely(queues.RECORD_REPORT, {"a": 1}, sleep=back_after_two)
    assert pauses == [15.0, 15.0]
    assert [letter.payload for letter in web_letters()] == [{"a": 1}]


def test_a_report_that_cannot_be_sent_at_all_is_not_swallowed(filesystem_broker: Path) -> None:
    (filesystem_broker / "messages").rmdir()
    (filesystem_broker / "messages").write_text("in the way")
    with pytest.raises((OperationalError, OSError)):
        tasks._send_surely(queues.RECORD_REPORT, {}, sleep=lambda _: None)


def test_grading_answers_with_a_verdict_and_keeps_the_result_for_the_asker() -> None:
    payload = {
        "problem": PROBLEM.slug, "dsl": "tirx", "kernel": "def (", "device": "cpu",
        "workload": "smoke",
    }  # fmt: skip
    assert tasks.grade_kernel(payload)["outcome"] == "refused"
    assert tasks.grade_kernel.ignore_result is False
