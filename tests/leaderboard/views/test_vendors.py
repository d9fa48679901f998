"""A vendor's pages: enter, manage, check; and that a key never comes back."""

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from leaderboard.models import Entry
from runner import sealing
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db

KEY = "sk-canary-0123456789"
NEW = "/vendor/entries/new/"
MANAGE = "/vendor/entries/model-a/"
FORM = {
    "name": "Model A",
    "provider": "openai",
    # The port of no service: whoever tries it is refused at once.
    "base_url": "http://127.0.0.1:9/v1",
    "model_id": "model-a-1",
    "api_key": KEY,
}


@pytest.fixture
def vera(client: Client) -> Client:
    """A client that Vera is signed in with."""
    factories.make_user("vera")
    client.login(username="vera", password="vera")
    return client


def test_a_visitor_is_asked_to_log_in(client: Client) -> None:
    for address in ("/vendor/", NEW, MANAGE):
        assert client.get(address).headers["Location"] == f"/accounts/login/?next={address}"


def test_an_account_without_entries_is_told_what_an_entry_is(vera: Client) -> None:
    assert "An entry is one model behind one endpoint." in text_of(vera, "/vendor/")


def test_entering_seals_the_key_and_shows_it_nowhere(vera: Client) -> None:
    response = vera.post(NEW, FORM)
    assert response.headers["Location"] == MANAGE
    entry = Entry.objects.get()
    assert entry.owner is not None
    assert entry.owner.get_username() == "vera"
    opened = sealing.open_sealed(
        entry.sealed_key, base_url=FORM["base_url"], private_key=settings.SEAL_PRIVATE_KEY
    )
    assert opened == KEY
    addresses = (MANAGE, "/vendor/", "/", "/entries/model-a/", f"{MANAGE}runs/new/")
    for address in addresses:
        html = html_of(vera, address)
        assert KEY not in html
        assert entry.sealed_key not in html


def test_entering_has_the_endpoint_checked(vera: Client) -> None:
    vera.post(NEW, FORM)
    entry = Entry.objects.get()
    assert entry.preflight != Entry.Preflight.UNCHECKED


def test_a_faulty_form_comes_back_without_the_key(vera: Client) -> None:
    response = vera.post(NEW, FORM | {"model_id": ""})
    assert response.status_code == 422
    html = response.content.decode()
    assert KEY not in html
    assert 'value="Model A"' in html
    assert not Entry.objects.exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": "ftp://models.example.com"}, "is none of an endpoint"),
        ({"base_url": "https://me:secret@models.example.com"}, "no user name or password"),
        ({"name": "Taken"}, "already exists"),
    ],
)
def test_a_refusal_is_passed_on_in_words(vera: Client, fields: dict[str, str], words: str) -> None:
    factories.make_entry("Taken")
    response = vera.post(NEW, FORM | fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert Entry.objects.count() == 1


def test_a_stranger_finds_nothing_and_changes_nothing(client: Client) -> None:
    factories.make_entry("Model A", owner=factories.make_user("vera"))
    factories.make_user("eve")
    client.login(username="eve", password="eve")
    for address in (MANAGE, f"{MANAGE}preflight/"):
        assert client.get(address).status_code == 404
    assert client.post(MANAGE, FORM | {"name": "Mine now"}).status_code == 404
    assert client.post(f"{MANAGE}check/").status_code == 404
    assert Entry.objects.get().name == "Model A"
    assert "Model A" not in html_of(client, "/vendor/")


def test_an_entry_without_an_owner_belongs_to_no_account(vera: Client) -> None:
    factories.make_entry("Model A", owner=None)
    assert vera.get(MANAGE).status_code == 404


def test_an_empty_key_keeps_the_stored_one(vera: Client) -> None:
    vera.post(NEW, FORM)
    sealed = Entry.objects.get().sealed_key
    vera.post(MANAGE, FORM | {"api_key": "", "model_id": "model-a-2"})
    entry = Entry.objects.get()
    assert entry.model_id == "model-a-2"
    assert entry.sealed_key == sealed


def test_a_new_address_drops_the_stored_key_and_says_so(vera: Client) -> None:
    vera.post(NEW, FORM)
    vera.post(MANAGE, FORM | {"api_key": "", "base_url": "http://127.0.0.1:10/v1"})
    assert Entry.objects.get().sealed_key == ""
    assert "No key is stored." in text_of(vera, MANAGE)


def test_checking_again_is_a_post_and_leads_back(vera: Client) -> None:
    vera.post(NEW, FORM)
    token = Entry.objects.get().preflight_token
    assert vera.get(f"{MANAGE}check/").status_code == 405
    assert vera.post(f"{MANAGE}check/").headers["Location"] == MANAGE
    assert Entry.objects.get().preflight_token != token


@pytest.mark.parametrize(
    ("state", "words", "is_settled"),
    [
        (Entry.Preflight.UNCHECKED, "Not checked yet", True),
        (Entry.Preflight.CHECKING, "Being checked", False),
        (Entry.Preflight.PASSED, "It answers", True),
        (Entry.Preflight.FAILED, "It does not answer", True),
    ],
)
def test_the_preflight_is_answered_in_words_and_polled_while_open(
    vera: Client, state: str, words: str, is_settled: bool
) -> None:
    vera.post(NEW, FORM)
    Entry.objects.update(preflight=state, preflight_at=timezone.now(), preflight_steps=["<b>1</b>"])
    html = html_of(vera, f"{MANAGE}preflight/")
    assert words in html
    assert ("data-live-done" in html) == is_settled
    assert "<b>1</b>" not in html


def test_a_poll_of_the_preflight_gets_304_until_it_moves(vera: Client) -> None:
    vera.post(NEW, FORM)
    Entry.objects.update(preflight=Entry.Preflight.CHECKING, preflight_at=None)
    address = f"{MANAGE}preflight/"
    headers = {"If-None-Match": vera.get(address).headers["ETag"]}
    assert vera.get(address, headers=headers).status_code == 304
    Entry.objects.update(preflight=Entry.Preflight.PASSED, preflight_at=timezone.now())
    assert vera.get(address, headers=headers).status_code == 200


def test_a_form_from_another_site_is_refused(vera: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.login(username="vera", password="vera")
    response = strict.post(NEW, FORM)
    assert response.status_code == 403
    assert "sent from another site" in response.content.decode()
    assert not Entry.objects.exists()


def test_private_pages_stay_out_of_caches(vera: Client) -> None:
    assert vera.get("/vendor/").headers["Cache-Control"] == "private, no-store"
