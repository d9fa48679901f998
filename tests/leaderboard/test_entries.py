"""Entering an endpoint, changing it, and having it checked."""

import pytest

from leaderboard.models import Entry
from leaderboard.services import entries
from leaderboard.services.refusals import Refusal
from runner import queues, sealing
from runner.messages import PreflightOrder, PreflightReport
from tests.conftest import Mailroom
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db

FORM = {
    "name": "Model A 1.5",
    "provider": "openai",
    "base_url": "https://api.example.com/v1",
    "model_id": "model-a",
    "api_key": "sk-very-secret",
}


def enter(**fields: str) -> Entry:
    return entries.enter(owner=None, **(FORM | fields))


def opened(entry: Entry, settings) -> str:
    return sealing.open_sealed(
        entry.sealed_key, base_url=entry.base_url, private_key=settings.SEAL_PRIVATE_KEY
    )


def test_the_key_is_stored_sealed_and_bound_to_its_address(settings) -> None:
    entry = enter()
    stored = Entry.objects.values().get(pk=entry.pk)
    assert "sk-very-secret" not in str(stored)
    assert opened(entry, settings) == "sk-very-secret"
    with pytest.raises(sealing.SealError, match="another address"):
        sealing.open_sealed(
            entry.sealed_key,
            base_url="https://elsewhere.example.com",
            private_key=settings.SEAL_PRIVATE_KEY,
        )


def test_an_entry_belongs_to_its_owner() -> None:
    vera, otto = factories.make_user("vera"), factories.make_user("otto")
    entry = entries.enter(owner=vera, **FORM)
    assert list(Entry.objects.owned_by(vera)) == [entry]
    assert list(Entry.objects.owned_by(otto)) == []


def test_slugs_are_made_of_names_and_never_collide() -> None:
    assert enter().slug == "model-a-15"
    assert enter(name="Model-A 15").slug == "model-a-15-2"
    assert enter(name="模型").slug == "entry"
    assert enter(name="New").slug == "new-2"  # "new" is the address of the form


def test_a_taken_name_is_refused() -> None:
    enter()
    with pytest.raises(Refusal, match=r"name.*already exists"):
        enter()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"base_url": "ftp://example.com"}, "none of an endpoint"),
        ({"base_url": "api.example.com/v1"}, "none of an endpoint"),
        ({"base_url": "https://"}, "none of an endpoint"),
        ({"base_url": "https://[::1"}, "cannot be read"),
        ({"base_url": "https://example.com:port"}, "cannot be read"),
        ({"base_url": "https://user:word@example.com"}, "no user name or password"),
        ({"base_url": "https://example.com/v1?key=1"}, "cannot have"),
        ({"base_url": "https://example.com/a b"}, "cannot have"),
        ({"base_url": "https://example.com/" + "a" * 300}, "longer than 300"),
        ({"name": " "}, "name"),
        ({"name": "n" * 81}, "name"),
        ({"model_id": ""}, "model id"),
        ({"provider": "telepathy"}, "provider"),
    ],
)
def test_what_no_endpoint_can_have_is_refused(fields: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        enter(**fields)
    assert not Entry.objects.exists()


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8001/v1", "http://vllm:8000", "https://[::1]/"]
)
def test_addresses_of_private_networks_are_for_agent_hosts_to_judge(address: str) -> None:
    assert enter(base_url=address).base_url == address


def test_a_new_address_clears_the_key() -> None:
    entry = entries.change(enter(), base_url="https://elsewhere.example.com/v1")
    assert entry.sealed_key == ""


def test_a_new_address_may_bring_its_key(settings) -> None:
    entry = entries.change(enter(), base_url="https://elsewhere.example.com/v1", api_key="sk-other")
    assert opened(entry, settings) == "sk-other"


def test_a_new_name_keeps_key_slug_and_preflight() -> None:
    entry = enter()
    entries.check(entry)
    changed = entries.change(entry, name="Model B")
    assert (changed.name, changed.slug) == ("Model B", "model-a-15")
    assert changed.sealed_key == entry.sealed_key
    assert changed.preflight == Entry.Preflight.CHECKING


def test_a_new_model_is_unchecked_and_its_old_answer_is_not_taken() -> None:
    entry = entries.check(enter())
    changed = entries.change(entry, model_id="model-b")
    assert changed.preflight == Entry.Preflight.UNCHECKED
    assert not entries.record_preflight(
        PreflightReport(entry.pk, entry.preflight_token, passed=True, summary="answers")
    )
    changed.refresh_from_db()
    assert changed.preflight == Entry.Preflight.UNCHECKED


def test_another_model_cannot_inherit_results() -> None:
    entry = enter()
    factories.make_replicate(factories.make_run(entry), factories.make_problem())
    with pytest.raises(Refusal, match=r"model-a has results .* make a new entry for model-b"):
        entries.change(entry, model_id="model-b")


def test_a_check_sends_the_endpoint_with_its_sealed_key_only(
    mailroom: Mailroom, django_capture_on_commit_callbacks
) -> None:
    entry = enter()
    with django_capture_on_commit_callbacks(execute=True):
        entries.check(entry)
    (letter,) = mailroom.take(queues.AGENT)
    order = PreflightOrder.from_json(letter.payload)
    assert letter.task == queues.CHECK_ENDPOINT
    assert (order.entry_id, order.check_token) == (entry.pk, entry.preflight_token)
    assert order.endpoint.base_url == entry.base_url
    assert order.endpoint.sealed_key == entry.sealed_key
    assert "sk-very-secret" not in str(letter.payload)


@pytest.mark.parametrize("passed", [True, False])
def test_the_newest_checks_answer_is_stored_once(passed: bool) -> None:
    entry = enter()
    forgotten = entries.check(entry).preflight_token
    token = entries.check(entry).preflight_token
    late = PreflightReport(entry.pk, forgotten, passed=not passed, summary="late")
    report = PreflightReport(
        entry.pk, token, passed=passed, summary="says \x00 hello", steps=("address", "key")
    )
    assert not entries.record_preflight(late)
    assert entries.record_preflight(report)
    assert not entries.record_preflight(report)
    entry.refresh_from_db()
    assert entry.preflight == ("passed" if passed else "failed")
    assert entry.preflight_summary == "says \ufffd hello"
    assert entry.preflight_steps == ["address", "key"]
    assert entry.preflight_at is not None
