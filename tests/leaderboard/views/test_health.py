"""What machines are told about the site's health."""

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runner.protocol import Arm
from tests.leaderboard import factories

_ASK = """
import django; django.setup()
from django.test import Client
response = Client(SERVER_NAME="127.0.0.1").get("/healthz")
print(response.status_code, response.content.decode())
"""


@pytest.mark.django_db
def test_a_healthy_site_says_so(client: Client) -> None:
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {
        "database": True,
        "pending_migrations": 0,
        "broker": True,
        "oldest_queued_sec": None,
    }
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.django_db
def test_the_oldest_queued_trial_has_an_age(client: Client) -> None:
    factories.make_trial(
        factories.make_run(),
        factories.make_problem(),
        Arm.SOLO_TIRX,
        queued_at=timezone.now() - timedelta(seconds=100),
    )
    assert 100 <= client.get("/healthz").json()["oldest_queued_sec"] < 200


def test_without_a_database_it_answers_503() -> None:
    # A process of its own, whose database is at the port of no service, and so is its broker.
    settings = {
        "DJANGO_SETTINGS_MODULE": "mkb_site.settings.test",
        "MKB_DATABASE": "postgresql://nobody:x@127.0.0.1:9/none",
        "MKB_BROKER": "redis://127.0.0.1:9/0",
    }
    asked = subprocess.run(
        [sys.executable, "-c", _ASK],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    status, _, body = asked.stdout.strip().splitlines()[-1].partition(" ")
    assert status == "503"
    assert json.loads(body) == {
        "database": False,
        "pending_migrations": None,
        "broker": False,
        "oldest_queued_sec": None,
    }
