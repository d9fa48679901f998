"""Trying an endpoint before any run: how far it got, in sentences that go home."""

from pathlib import Path
from typing import Any

import celery
import pytest

from runner import queues, sealing, tasks
from runner.messages import PreflightReport
from tests.conftest import Letter, Mailroom
from tests.runner.endpoint.wire import Answer, anthropic_events, openai_events, raw, serving, status

PRIVATE, PUBLIC = sealing.new_key_pair()
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch, filesystem_broker: Path) -> None:
    """An agent host: it may reach this machine, and holds the private key."""
    monkeypatch.setenv("MKB_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("MKB_SEAL_PRIVATE_KEY", PRIVATE)


def web_letters() -> list[Letter]:
    return Mailroom(celery.current_app).take(queues.WEB)


def checked(provider: str, *answers: Answer, **changes: Any) -> PreflightReport:
    with serving(*answers) as wire:
        base_url = f"{wire.url}/v1" if provider == "openai" else wire.url
        sealed = sealing.seal("sk-vendor", base_url=base_url, public_key=PUBLIC)
        endpoint = {
            "provider": provider, "base_url": base_url, "model_id": "m", "sealed_key": sealed,
        }  # fmt: skip
        endpoint.update(changes)
        tasks.check_endpoint({"entry_id": 3, "check_token": "t", "endpoint": endpoint})
    (letter,) = web_letters()
    assert letter.task == queues.RECORD_PREFLIGHT
    report = PreflightReport.from_json(letter.payload)
    assert (report.entry_id, report.check_token) == (3, "t")
    assert report.steps
    if not report.passed:
        assert report.summary == report.steps[-1]
    assert "sk-vendor" not in str(report)
    return report


CALL = (("a", "report_ready", '{"word": "heron"}'),)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_working_endpoint_passes_its_pre_flight(provider: str) -> None:
    if provider == "openai":
        answers = [raw(openai_events("", CALL, USAGE)), raw(openai_events("bye", (), USAGE))]
    else:
        answers = [raw(anthropic_events("", CALL)), raw(anthropic_events("bye"))]
    report = checked(provider, *answers)
    assert report.passed
    assert report.steps == (
        "The address is allowed.",
        "The endpoint accepts connections.",
        "The key is accepted.",
        "The model m answers.",
        "The model calls tools with arguments.",
        "The model takes the result of a tool call and goes on.",
        "Token counts are reported.",
    )


def test_missing_token_counts_are_said_but_no_obstacle() -> None:
    report = checked("openai", raw(openai_events("", CALL)), raw(openai_events("bye")))
    assert report.passed
    assert "unknown" in report.steps[-1]


@pytest.mark.parametrize(
    ("answers", "n_good_steps", "words"),
    [
        ([status(401)], 2, "does not accept the key"),
        ([status(404)], 2, "model id is unknown"),
        ([status(500)], 1, "fault of its own"),
        ([raw(b"<html>")], 2, "no stream of chat completion chunks"),
        ([raw(openai_events("I cannot"))], 4, "did not call the tool"),
        ([raw(openai_events("", (("a", "report_ready", "{}"),)))], 4, "other arguments"),
        ([raw(openai_events("", CALL)), status(400)], 5, "refused the request"),
    ],
)
def test_a_pre_flight_says_how_far_it_got_and_what_stopped_it(
    answers: list[Answer], n_good_steps: int, words: str
) -> None:
    report = checked("openai", *answers)
    assert not report.passed
    assert len(report.steps) == n_good_steps + 1
    assert words in report.summary
    assert report.summary[0].isupper()


def test_a_pre_flight_of_a_forbidden_address_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKB_ALLOW_NETWORKS")
    report = checked("openai", status(200))
    assert not report.passed
    assert report.steps[0].startswith("The address is not on the public internet")


def test_a_pre_flight_with_a_key_given_for_another_address_says_so() -> None:
    other = sealing.seal("sk", base_url="https://other.example", public_key=PUBLIC)
    assert "enter the key again" in checked("openai", status(200), sealed_key=other).summary
