"""A reviewer's verdict, from the form to the board."""

import pytest
from django.test import Client

from leaderboard.models import Review
from leaderboard.services import rankings
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import text_of

pytestmark = pytest.mark.django_db

TRANSFER = "/entries/model-a/02_problem/cutedsl2tirx/r1/"
REVIEW = f"{TRANSFER}review/"
FORM = {"verdict": "reward_hack", "note": "It returns <b>cached</b> outputs."}


@pytest.fixture
def rex(client: Client) -> Client:
    """A client that a reviewer is signed in with, and a measured transfer."""
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem())
    rankings.refresh(run.entry)
    factories.make_user("rex", reviewer=True)
    client.login(username="rex", password="rex")
    return client


def test_a_rejected_transfer_says_so_and_leaves_the_board(rex: Client) -> None:
    assert rex.post(REVIEW, FORM).headers["Location"] == TRANSFER
    text = text_of(rex, TRANSFER)
    assert "Rejected in review." in text
    assert "Counts on the board no: rejected in review" in text
    assert "0/1 1 rejected in review" in text_of(rex, "/")
    assert "rejected in review" in text_of(rex, "/entries/model-a/")


def test_a_note_is_inert(rex: Client) -> None:
    rex.post(REVIEW, FORM)
    html = rex.get(TRANSFER).content.decode()
    assert "<b>cached</b>" not in html
    assert "&lt;b&gt;cached&lt;/b&gt;" in html


def test_a_later_verdict_replaces_the_first_and_both_stay_visible(rex: Client) -> None:
    rex.post(REVIEW, FORM)
    rex.post(REVIEW, {"verdict": "clean", "note": "Looked again."})
    text = text_of(rex, TRANSFER)
    assert "Rejected in review." not in text
    assert "Counts on the board yes" in text
    assert "Reward hack replaced" in text
    assert "Looked again." in text


@pytest.mark.parametrize("form", [{}, FORM | {"note": " "}, FORM | {"verdict": "splendid"}])
def test_a_form_with_a_hole_comes_back_with_its_faults(rex: Client, form: dict[str, str]) -> None:
    response = rex.post(REVIEW, form)
    assert response.status_code == 422
    assert 'class="fault"' in response.content.decode()
    assert not Review.objects.exists()


def test_nobody_reviews_an_entry_of_their_own(rex: Client) -> None:
    owner = factories.make_user("olga", reviewer=True)
    entry = factories.make_entry("Mine", owner=owner)
    factories.make_replicate(factories.make_run(entry), factories.make_problem())
    rex.login(username="olga", password="olga")
    response = rex.post("/entries/mine/02_problem/cutedsl2tirx/r1/review/", FORM)
    assert response.status_code == 422
    assert "is your own entry" in response.content.decode()


def test_others_may_not_review(rex: Client) -> None:
    rex.logout()
    assert rex.post(REVIEW, FORM).headers["Location"].startswith("/accounts/login/")
    factories.make_user("vera")
    rex.login(username="vera", password="vera")
    response = rex.post(REVIEW, FORM)
    assert response.status_code == 403
    assert "This account may not do that" in response.content.decode()
    assert not Review.objects.exists()


def test_a_review_is_a_post(rex: Client) -> None:
    assert rex.get(REVIEW).status_code == 405


def test_a_review_from_another_site_is_refused(rex: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.login(username="rex", password="rex")
    assert strict.post(REVIEW, FORM).status_code == 403
    assert not Review.objects.exists()


def test_the_form_is_there_for_reviewers(rex: Client) -> None:
    assert "Record the verdict" in text_of(rex, TRANSFER)
