"""The back office: nothing secret is shown, and results can only be read."""

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from leaderboard.models import Entry, Trial
from runner.protocol import Arm
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db
SEALED, TOKEN = "sealed-letters-of-the-key", "f" * 32


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="root"))
    return client


@pytest.fixture
def trial() -> Trial:
    entry = factories.make_entry(sealed_key=SEALED, preflight_token="a" * 32)
    trials = factories.make_replicate(factories.make_run(entry), factories.make_problem())
    trial = trials[Arm.CUTEDSL_TO_TIRX_SKILL]
    factories.make_submission(trial)
    factories.make_review(trial, factories.make_user())
    return trial


def pages(model: type) -> list[str]:
    name = f"admin:leaderboard_{model._meta.model_name}"
    rows = model.objects.all()
    return [
        reverse(f"{name}_changelist"),
        *(reverse(f"{name}_change", args=[row.pk]) for row in rows),
    ]


def test_no_page_shows_a_key_or_a_token(client: Client, trial: Trial) -> None:
    models = [model for model in site._registry if model._meta.app_label == "leaderboard"]
    assert len(models) == 9
    for model in models:
        for address in pages(model):
            answer = client.get(address)
            assert answer.status_code == 200, address
            shown = answer.content.decode()
            assert SEALED not in shown
            assert TOKEN not in shown
            assert "a" * 32 not in shown


def test_results_cannot_be_changed_added_or_deleted(client: Client, trial: Trial) -> None:
    change = reverse("admin:leaderboard_trial_change", args=[trial.pk])
    assert client.post(change, {"status": "failed"}).status_code == 403
    assert client.get(reverse("admin:leaderboard_trial_add")).status_code == 403
    delete = reverse("admin:leaderboard_trial_delete", args=[trial.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    trial.refresh_from_db()
    assert trial.status == "graded"


def test_an_entry_keeps_key_and_address_when_it_gets_an_owner(client: Client, trial: Trial) -> None:
    otto = factories.make_user("otto")
    change = reverse("admin:leaderboard_entry_change", args=[trial.entry_id])
    answer = client.post(
        change, {"owner": otto.pk, "base_url": "http://elsewhere", "sealed_key": "mine"}
    )
    assert answer.status_code == 302
    entry = Entry.objects.get(pk=trial.entry_id)
    assert entry.owner == otto
    assert (entry.sealed_key, entry.base_url) == (SEALED, trial.entry.base_url)
