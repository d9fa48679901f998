"""The board's numbers as JSON."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.services import rankings
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import measured

pytestmark = pytest.mark.django_db


def test_an_empty_board_is_an_empty_list(client: Client) -> None:
    response = client.get("/api/v1/rankings")
    assert response.headers["Content-Type"].startswith("application/json")
    assert response.json() == []


def test_a_ranking_has_these_fields_and_no_other(client: Client) -> None:
    measured()
    first = client.get("/api/v1/rankings?direction=cutedsl2tirx").json()[0]
    assert first == {
        "entry": "model-a",
        "direction": "cutedsl2tirx",
        "device": "cpu",
        "workload": "smoke",
        "n": 2,
        "n_planned": 2,
        "lift": pytest.approx(0.5),
        "help": 1.0,
        "harm": 0.0,
        "neutral": 0.0,
        "interval": {"low": pytest.approx(0.5), "high": pytest.approx(0.5)},
        "scripted": False,
        "scoring": "mkb-1",
        "version": 1,
    }


def test_what_is_unknown_is_null(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem(), (None, None, None, None))
    rankings.refresh(run.entry)
    first = client.get("/api/v1/rankings").json()[0]
    assert first["n"] == 0
    for name in ("lift", "help", "harm", "neutral", "interval"):
        assert first[name] is None


def test_one_problem_has_a_lift_and_no_interval(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem())
    rankings.refresh(run.entry)
    first = client.get("/api/v1/rankings").json()[0]
    assert first["lift"] is not None
    assert first["interval"] is None


def test_the_list_can_be_narrowed(client: Client) -> None:
    measured("On CPU")
    measured("On GPU", device="h200", workload="full")
    found = client.get("/api/v1/rankings?device=h200&workload=full").json()
    assert {row["entry"] for row in found} == {"on-gpu"}
    assert client.get("/api/v1/rankings?direction=sideways").status_code == 422


def test_it_answers_304_until_a_ranking_moves(client: Client) -> None:
    measured("Model A")
    etag = client.get("/api/v1/rankings").headers["ETag"]
    headers = {"If-None-Match": etag}
    assert client.get("/api/v1/rankings", headers=headers).status_code == 304
    measured("Model B")
    assert client.get("/api/v1/rankings", headers=headers).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_rankings(client: Client) -> None:
    measured("Model A")
    measured("Model B")
    with CaptureQueriesContext(connection) as queries:
        client.get("/api/v1/rankings")
    assert len(queries) == 2  # the version for the ETag, the rows


def test_the_schema_is_published_and_the_docs_page_is_not(client: Client) -> None:
    assert "/api/v1/rankings" in client.get("/api/v1/openapi.json").json()["paths"]
    assert client.get("/api/v1/docs").status_code == 404
