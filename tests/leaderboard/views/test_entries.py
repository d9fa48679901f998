"""One entry's page: its numbers, and every cell as a link."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Trial
from leaderboard.services import rankings
from runner.protocol import Arm, Outcome
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db


def test_an_entry_without_runs_says_so(client: Client) -> None:
    factories.make_entry("Model A")
    text = text_of(client, "/entries/model-a/")
    assert "No comparison has been counted yet." in text
    assert "No run was started yet." in text


def test_an_unknown_entry_is_not_found(client: Client) -> None:
    assert client.get("/entries/nobody/").status_code == 404


def test_each_direction_shows_its_numbers_with_intervals(client: Client) -> None:
    run = factories.make_run()
    for number in (2, 25):
        factories.make_replicate(run, factories.make_problem(number))
    rankings.refresh(run.entry)
    text = text_of(client, "/entries/model-a/")
    assert "Lift +50.0 % [+50.0, +50.0]" in text
    # Wilson for 2 of 2: [34.2, 100.0].
    assert "Helped 100.0 % [34.2, 100.0]" in text
    assert "2/2 problems" in text


@pytest.mark.parametrize(
    ("results", "sign", "word"),
    [
        ((2.0, 1.0, 1.5, 1.0), "▲", "helped"),
        ((2.0, 1.0, 0.5, 1.0), "▼", "harmed"),
        ((2.0, 1.0, 1.01, 1.0), "◆", "neutral"),
        ((2.0, 1.0, None, 1.0), "○", "skipped"),
        ((2.0, None, None, None), "…", "pending"),
    ],
)
def test_a_cell_shows_sign_and_word_and_links_to_its_transfer(
    client: Client, results: tuple[float | None, ...], sign: str, word: str
) -> None:
    factories.make_replicate(factories.make_run(), factories.make_problem(), results)
    html = html_of(client, "/entries/model-a/")
    start = html.index('href="/entries/model-a/02_problem/cutedsl2tirx/r1/"')
    cell = html[start : html.index("</a>", start)]
    assert sign in cell
    assert word in cell


def test_a_host_failure_is_infrastructure_and_no_result(client: Client) -> None:
    factories.make_replicate(
        factories.make_run(), factories.make_problem(), (2.0, None, None, None)
    )
    Trial.objects.filter(arm=Arm.SOLO_TIRX).update(
        status=Trial.Status.FAILED, reason="the host broke"
    )
    text = text_of(client, "/entries/model-a/")
    assert text.count("⟂ infrastructure") >= 3  # legend, solo, and the cells that need it


def test_a_solo_links_to_its_trial_and_says_how_it_failed(client: Client) -> None:
    results = (Outcome.WRONG_VALUES, 1.0, 1.5, 1.0)
    factories.make_replicate(factories.make_run(), factories.make_problem(), results)
    html = html_of(client, "/entries/model-a/")
    assert 'href="/entries/model-a/trials/p02_r1_solo_cutedsl/"' in html
    assert "returned wrong values" in html


def test_usage_is_unknown_as_soon_as_one_trial_did_not_report(client: Client) -> None:
    factories.make_replicate(factories.make_run(), factories.make_problem())
    # Four graded trials of 1,000 input tokens each.
    assert "Input tokens 4,000" in text_of(client, "/entries/model-a/")
    Trial.objects.filter(arm=Arm.SOLO_TIRX).update(n_input_tokens=None)
    html = html_of(client, "/entries/model-a/")
    assert "4,000" not in html
    assert "some trial did not report it" in html


def test_two_devices_make_two_grids(client: Client) -> None:
    entry = factories.make_entry()
    problem = factories.make_problem()
    factories.make_replicate(factories.make_run(entry, device="cpu"), problem)
    factories.make_replicate(factories.make_run(entry, device="h200"), problem, replicate=2)
    assert html_of(client, "/entries/model-a/").count('<table class="grid">') == 2


def test_the_number_of_queries_does_not_grow_with_the_transfers(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(2))
    with CaptureQueriesContext(connection) as few:
        client.get("/entries/model-a/")
    for number in (25, 36, 49, 60, 72):
        factories.make_replicate(run, factories.make_problem(number))
    with CaptureQueriesContext(connection) as many:
        client.get("/entries/model-a/")
    assert len(many) == len(few) <= 7


def test_only_the_owner_sees_the_way_to_manage(client: Client) -> None:
    factories.make_entry("Model A", owner=factories.make_user("vera"))
    address = "/entries/model-a/"
    assert "Manage this entry" not in html_of(client, address)
    client.login(username="vera", password="vera")
    assert "Manage this entry" in html_of(client, address)


def test_the_endpoint_and_its_key_are_not_public(client: Client) -> None:
    factories.make_entry("Model A", base_url="http://10.1.2.3:9/v1", sealed_key="sealed-canary")
    html = html_of(client, "/entries/model-a/")
    assert "10.1.2.3" not in html
    assert "sealed-canary" not in html
