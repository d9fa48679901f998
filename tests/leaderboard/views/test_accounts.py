"""Opening an account, signing in and out."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.leaderboard import factories
from tests.leaderboard.views.test_board import text_of

pytestmark = pytest.mark.django_db

SIGNUP = {"username": "vera", "password1": "a-long-phrase-9", "password2": "a-long-phrase-9"}


def test_an_account_is_opened_signed_in_and_without_rights(client: Client) -> None:
    response = client.post("/accounts/signup/", SIGNUP)
    assert response.headers["Location"] == "/vendor/"
    user = User.objects.get(username="vera")
    assert not user.is_staff
    assert not user.has_perm("leaderboard.add_review")
    assert client.get("/vendor/").status_code == 200


def test_a_weak_password_comes_back_with_the_reason_and_without_itself(client: Client) -> None:
    weak = SIGNUP | {"password1": "12345678", "password2": "12345678"}
    response = client.post("/accounts/signup/", weak)
    assert response.status_code == 422
    assert "entirely numeric" in response.content.decode()
    assert "12345678" not in response.content.decode()
    assert not User.objects.exists()


def test_signing_in_leads_to_where_one_was_going_on_this_site(client: Client) -> None:
    factories.make_user("vera")
    form = {"username": "vera", "password": "vera"}
    there = client.post("/accounts/login/", form | {"next": "/vendor/entries/new/"})
    assert there.headers["Location"] == "/vendor/entries/new/"
    client.logout()
    elsewhere = client.post("/accounts/login/", form | {"next": "https://elsewhere.example/"})
    assert elsewhere.headers["Location"] == "/vendor/"


def test_a_wrong_password_is_said_to_be_wrong(client: Client) -> None:
    factories.make_user("vera")
    response = client.post("/accounts/login/", {"username": "vera", "password": "no"})
    assert response.status_code == 200
    assert "enter a correct username and password" in response.content.decode()


def test_signing_out_is_a_post(client: Client) -> None:
    factories.make_user("vera")
    client.login(username="vera", password="vera")
    assert client.get("/accounts/logout/").status_code == 405
    client.post("/accounts/logout/")
    assert "Enter a model" in text_of(client)
