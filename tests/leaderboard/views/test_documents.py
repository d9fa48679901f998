"""Pages of prose, and what robots and browsers ask for by themselves."""

import re

import pytest
from django.test import Client

from tests.leaderboard import factories
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db


def test_the_paper_is_quoted_with_its_source_and_kept_apart(client: Client) -> None:
    text = text_of(client, "/about/")
    assert "arXiv 2610.05014" in text
    assert "−19.1 % and +29.3 %" in text
    assert "none of it was measured here" in text


def test_methods_names_the_scoring_version(client: Client) -> None:
    assert "mkb-1" in text_of(client, "/methods/")


def test_every_link_into_methods_has_its_definition(client: Client) -> None:
    run = factories.make_run()
    factories.make_replicate(run, factories.make_problem())
    anchors = set(re.findall(r'id="([^"]+)"', html_of(client, "/methods/")))
    pages = ("/", "/entries/model-a/", "/entries/model-a/02_problem/cutedsl2tirx/r1/")
    wanted = {
        anchor
        for page in pages
        for anchor in re.findall(r'href="/methods/#([^"]+)"', html_of(client, page))
    }
    assert wanted
    assert wanted <= anchors


def test_robots_stay_out_of_what_belongs_to_accounts(client: Client) -> None:
    response = client.get("/robots.txt")
    assert response.headers["Content-Type"].startswith("text/plain")
    assert "Disallow: /vendor/" in response.content.decode()


def test_an_address_where_nothing_is_says_so_in_the_site_s_clothes(client: Client) -> None:
    response = client.get("/no/such/page/")
    assert response.status_code == 404
    assert "Nothing is at this address" in response.content.decode()
