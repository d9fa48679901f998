"""The front page: sentences, picture, tables, and what a poll gets."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Entry, Review, Run, Trial
from leaderboard.services import rankings, reviews
from runner.protocol import Arm
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db


def measured(name: str = "Model A", *, scripted: bool = False, **run_fields: str) -> Run:
    """An entry with both directions measured on two problems, and its published rankings."""
    run = factories.make_run(factories.make_entry(name, is_scripted=scripted), **run_fields)
    # Solo 2.0 and 1.0, conditioned 1.5 and 1.0: the skill helps in TIRx and harms in CuTe DSL.
    for number in (2, 25):
        factories.make_replicate(run, factories.make_problem(number))
    rankings.refresh(run.entry)
    return run


def html_of(client: Client, address: str = "/") -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode().replace("\u00a0", " ")


def text_of(client: Client, address: str = "/") -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html_of(client, address)))


def test_an_empty_board_says_what_to_do(client: Client) -> None:
    text = text_of(client)
    assert "Nothing has been measured yet." in text
    assert "make run" in text
    assert "<svg viewBox" not in html_of(client)


def test_one_sentence_per_direction_speaks_of_the_leading_model(client: Client) -> None:
    measured()
    text = text_of(client)
    # 1.5 / 1.0 on both problems: lift 50 %, nothing harmed; 1.0 / 2.0 the other way: −50 %.
    assert "Given its own skill from CuTe DSL, Model A gains +50.0 % [+50.0, +50.0]" in text
    assert "and regresses on 0.0 %" in text
    assert "Given its own skill from TIRx, Model A ends at a lift of −50.0 %" in text
    assert "of 2 problems." in text


def test_a_scripted_entry_leads_only_where_no_model_was_measured(client: Client) -> None:
    measured("Demo", scripted=True)
    assert "Demo scripted gains" in text_of(client)
    measured("Model A")
    assert "Demo scripted gains" not in text_of(client)
    assert "Model A gains" in text_of(client)


def test_scripted_entries_stand_in_a_table_of_their_own(client: Client) -> None:
    measured("Demo", scripted=True)
    measured("Model A")
    parts = html_of(client).split("<h3>")
    models = [part for part in parts if part.startswith("Models")]
    scripted = [part for part in parts if part.startswith("Scripted")]
    assert len(models) == len(scripted) == 2
    assert all("Model A" in part and "Demo" not in part for part in models)
    assert all("Demo" in part and "Model A" not in part for part in scripted)


def test_no_rank_is_printed(client: Client) -> None:
    measured("Model A")
    assert "rank" not in re.sub(r"no ranking|never ranked", "", text_of(client)).lower()


def test_devices_are_never_mixed(client: Client) -> None:
    measured("On CPU", device="cpu", workload="smoke")
    measured("Also CPU", device="cpu", workload="smoke")
    measured("On GPU", device="h200", workload="full")
    # Two entries were measured on the CPU: it has most comparisons and is shown first.
    assert "On GPU" not in html_of(client)
    assert "On CPU" not in html_of(client, "/?device=h200")
    assert "On GPU" in html_of(client, "/?device=h200&workload=full")


def test_an_unknown_device_is_not_found(client: Client) -> None:
    measured()
    assert client.get("/?device=abacus").status_code == 404


def test_the_plane_draws_one_mark_per_entry_and_direction(client: Client) -> None:
    measured("Model A")
    measured("Demo", scripted=True)
    html = html_of(client)
    assert html.count('class="spot"') == 2
    assert html.count('class="spot hollow"') == 2


def test_one_problem_has_no_interval_and_says_so(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem())
    rankings.refresh(run.entry)
    assert "(no interval: fewer than 2 problems)" in text_of(client)
    assert "an interval needs at least 2 problems" in html_of(client)


def test_a_rejected_transfer_leaves_the_board_at_once_and_is_counted(client: Client) -> None:
    run = measured()
    trial = Trial.objects.get(problem=2, arm=Arm.CUTEDSL_TO_TIRX_SKILL)
    reviewer = factories.make_user("rex", reviewer=True)
    assert "2/2" in text_of(client)
    reviews.review(trial, reviewer=reviewer, verdict=Review.Verdict.BUG, note="A wrong draw.")
    text = text_of(client)
    assert "1/2 1 rejected in review" in text
    assert "2/2" in text  # the other direction
    assert run.entry.name in text


def test_a_run_in_progress_is_announced_with_a_link(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(), (2.0, None, 1.5, None))
    assert "in progress: 2 of 4 trials done" in text_of(client)
    assert f'href="/runs/{run.pk}/"' in html_of(client)


def test_a_finished_run_is_not_announced(client: Client) -> None:
    measured()
    assert "in progress" not in text_of(client)


def test_a_poll_gets_the_part_that_the_page_was_built_from(client: Client) -> None:
    measured()
    part = client.get("/results/").content.decode()
    assert "<html" not in part
    assert part.strip() in client.get("/").content.decode()


def test_a_poll_gets_304_until_something_moves(client: Client) -> None:
    run = measured()
    etag = client.get("/results/").headers["ETag"]
    assert client.get("/results/", headers={"If-None-Match": etag}).status_code == 304
    factories.make_replicate(run, factories.make_problem(36), (2.0, 1.0, 3.0, 1.0))
    rankings.refresh(run.entry)
    assert client.get("/results/", headers={"If-None-Match": etag}).status_code == 200


def test_a_poll_notices_a_trial_that_ends_before_any_number_moves(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(), (2.0, None, 1.5, None))
    etag = client.get("/results/").headers["ETag"]
    Trial.objects.filter(status=Trial.Status.QUEUED).update(
        status=Trial.Status.FAILED, reason="the host broke"
    )
    assert client.get("/results/", headers={"If-None-Match": etag}).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_entries(client: Client) -> None:
    measured("Model A")
    with CaptureQueriesContext(connection) as few:
        client.get("/")
    for number in range(5):
        measured(f"More {number}", scripted=number % 2 == 0)
    with CaptureQueriesContext(connection) as many:
        client.get("/")
    assert len(many) == len(few) <= 5


def test_a_name_cannot_become_markup(client: Client) -> None:
    run = measured("Model A")
    Entry.objects.filter(pk=run.entry.pk).update(name="<img src=x onerror=alert(1)>")
    html = html_of(client)
    assert "<img" not in html
    assert "&lt;img src=x" in html


def test_the_board_sets_no_cookie_and_allows_only_reading(client: Client) -> None:
    response = client.get("/")
    assert not response.cookies
    assert client.post("/").status_code == 405


def test_an_entry_without_a_counting_comparison_has_dashes_with_reasons(client: Client) -> None:
    measured("Model A")
    run = factories.make_run(factories.make_entry("Model B"))
    factories.make_replicate(run, factories.make_problem(2), (None, None, None, None))
    rankings.refresh(run.entry)
    html = html_of(client)
    assert Entry.objects.count() == 2
    assert 'title="no comparison counts yet"' in html
    assert "0/1" in html
