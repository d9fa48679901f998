"""The catalogue's pages."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Problem
from problems import catalog
from tests.leaderboard import factories
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db


def real_problem(text: str = "2") -> Problem:
    found = catalog.find(text)
    return factories.make_problem(
        found.number,
        slug=found.slug,
        family=found.family,
        title=found.title,
        source=found.source,
        fingerprint=found.fingerprint,
    )


def test_an_empty_catalogue_says_how_to_fill_it(client: Client) -> None:
    assert "manage.py sync_problems" in text_of(client, "/problems/")


def test_problems_are_listed_by_family_and_retired_ones_left_out(client: Client) -> None:
    factories.make_problem(2, family="attention", title="Shown")
    factories.make_problem(3, family="kv_cache", title="Gone", is_retired=True)
    text = text_of(client, "/problems/")
    assert "Attention" in text
    assert "Shown" in text
    assert "Gone" not in text


def test_a_problem_shows_where_it_is_from_its_workloads_and_its_source(client: Client) -> None:
    problem = real_problem()
    html = html_of(client, f"/problems/{problem.slug}/")
    assert "Apache-2.0" in html
    assert "<code>smoke</code>" in html
    assert '<span class="nf">reference</span>' in html
    assert "style=" not in html


def test_a_retired_problem_without_a_file_stays_at_its_address(client: Client) -> None:
    factories.make_problem(99, slug="99_gone", is_retired=True)
    text = text_of(client, "/problems/99_gone/")
    assert "left the catalogue" in text
    assert "not in this checkout" in text


def test_a_problem_lists_models_apart_from_scripted_entries(client: Client) -> None:
    problem = real_problem()
    factories.make_replicate(factories.make_run(factories.make_entry("Model A")), problem)
    demo = factories.make_entry("Demo", is_scripted=True)
    factories.make_replicate(factories.make_run(demo), problem)
    models, scripted = html_of(client, f"/problems/{problem.slug}/").split("<h3>Scripted")
    assert "Model A" in models
    assert "Demo" not in models
    assert f'href="/entries/demo/{problem.slug}/cutedsl2tirx/r1/"' in scripted


def test_the_number_of_queries_does_not_grow_with_the_entries(client: Client) -> None:
    problem = real_problem()
    factories.make_replicate(factories.make_run(factories.make_entry("Model A")), problem)
    with CaptureQueriesContext(connection) as few:
        client.get(f"/problems/{problem.slug}/")
    for number in range(4):
        run = factories.make_run(factories.make_entry(f"More {number}"))
        factories.make_replicate(run, problem)
    with CaptureQueriesContext(connection) as many:
        client.get(f"/problems/{problem.slug}/")
    assert len(many) == len(few) <= 4
