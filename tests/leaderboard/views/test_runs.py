"""A run's page, and the form that starts one."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Entry, Run, Trial
from runner.protocol import Arm
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db

NEW = "/vendor/entries/model-a/runs/new/"


def signed_in(client: Client, *, sealed_key: str = "sealed") -> Entry:
    """Vera, signed in, with Model A and two problems to choose from."""
    entry = factories.make_entry(
        "Model A", owner=factories.make_user("vera"), sealed_key=sealed_key
    )
    for number in (2, 25):
        factories.make_problem(number)
    client.login(username="vera", password="vera")
    return entry


def test_a_run_shows_each_trial_with_its_state_and_reason(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(), (2.0, None, 1.5, None))
    text = text_of(client, f"/runs/{run.pk}/")
    assert "2 of 4 trials done" in text
    assert "1 waiting for a source, 1 queued, 2 graded" in text
    assert "Waits for the skill of p02_r1_solo_tirx, which is queued." in text


def test_a_trial_that_waits_for_a_failed_source_says_so(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(), (2.0, None, 1.5, None))
    Trial.objects.filter(arm=Arm.SOLO_TIRX).update(
        status=Trial.Status.FAILED, reason="the GPU host lost power"
    )
    text = text_of(client, f"/runs/{run.pk}/")
    assert "The GPU host lost power" in text
    assert "Waits for p02_r1_solo_tirx, which failed for an infrastructure reason" in text


def test_an_unknown_run_is_not_found(client: Client) -> None:
    assert client.get("/runs/4711/").status_code == 404


def test_a_poll_gets_304_until_a_trial_moves_and_stops_at_the_end(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(), (2.0, None, 1.5, None))
    address = f"/runs/{run.pk}/trials/"
    first = client.get(address)
    assert "data-live-done" not in first.content.decode()
    headers = {"If-None-Match": first.headers["ETag"]}
    assert client.get(address, headers=headers).status_code == 304
    Trial.objects.exclude(status=Trial.Status.GRADED).update(
        status=Trial.Status.FAILED, reason="the host broke"
    )
    assert "data-live-done" in client.get(address, headers=headers).content.decode()


def test_the_number_of_queries_does_not_grow_with_the_trials(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(2), (2.0, None, 1.5, None))
    with CaptureQueriesContext(connection) as few:
        client.get(f"/runs/{run.pk}/")
    for number in (25, 36, 49):
        factories.make_replicate(run, factories.make_problem(number), (None, None, None, None))
    with CaptureQueriesContext(connection) as many:
        client.get(f"/runs/{run.pk}/")
    assert len(many) == len(few) <= 3


def test_a_stranger_finds_no_form_and_a_visitor_is_asked_to_log_in(client: Client) -> None:
    signed_in(client)
    client.logout()
    assert client.get(NEW).headers["Location"] == f"/accounts/login/?next={NEW}"
    factories.make_user("eve")
    client.login(username="eve", password="eve")
    assert client.get(NEW).status_code == 404
    assert client.post(NEW, {"problems": ["2"], "n_replicates": "1"}).status_code == 404
    assert not Run.objects.exists()


def test_the_owner_starts_a_run_of_the_chosen_problems(client: Client) -> None:
    signed_in(client)
    response = client.post(NEW, {"problems": ["25"], "n_replicates": "2"})
    run = Run.objects.get()
    assert response.headers["Location"] == f"/runs/{run.pk}/"
    assert run.started_by is not None
    assert run.started_by.get_username() == "vera"
    # 1 problem × 2 replicates × 4 arms.
    assert run.trials.count() == 8
    assert set(run.trials.values_list("problem", flat=True)) == {25}


def test_a_retired_problem_cannot_be_chosen(client: Client) -> None:
    signed_in(client)
    factories.make_problem(99, is_retired=True)
    assert "99_" not in html_of(client, NEW)
    assert client.post(NEW, {"problems": ["99"], "n_replicates": "1"}).status_code == 422


@pytest.mark.parametrize(
    "form", [{}, {"n_replicates": "1"}, {"problems": ["2"], "n_replicates": "0"}]
)
def test_a_form_with_a_hole_comes_back_with_its_faults(
    client: Client, form: dict[str, object]
) -> None:
    signed_in(client)
    response = client.post(NEW, form)
    assert response.status_code == 422
    assert 'class="fault"' in response.content.decode()
    assert not Run.objects.exists()


def test_a_refusal_is_passed_on_in_words(client: Client) -> None:
    signed_in(client, sealed_key="")
    response = client.post(NEW, {"problems": ["2"], "n_replicates": "1"})
    assert response.status_code == 422
    assert "key" in response.content.decode().split('class="fault">')[1].split("</p>")[0]


def test_an_unchecked_endpoint_is_pointed_out(client: Client) -> None:
    signed_in(client)
    assert "has not answered a check: not checked" in text_of(client, NEW)
