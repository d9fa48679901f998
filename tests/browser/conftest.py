"""A real Chromium before a live server with rows, and what it did while it was there."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from pytest_django.live_server_helper import LiveServer

from leaderboard.models import Artefact, Run, Trial
from leaderboard.services import rankings
from runner.protocol import Arm
from tests.leaderboard import factories

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KERNEL = (
    "import torch\n\nLANES = {lanes}\n\n\ndef solve(x):\n    return x * LANES  # " + "wide " * 40
)


@dataclass
class Visit:
    """A page in the browser, and whatever went wrong while it was open."""

    page: Page
    site: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.site}{path}")

    def watch(self) -> None:
        self.page.on("console", lambda message: self._console(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._request(request.url))

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _request(self, url: str) -> None:
        if not url.startswith((self.site, "data:")):
            self.complaints.append(f"request to {url}")


@pytest.fixture(scope="package")
def engine() -> Iterator[Playwright]:
    """Playwright. Its loop runs in this thread, and Django would take every query for a mistake."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as engine:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield engine


@pytest.fixture(scope="package")
def chromium(engine: Playwright) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "these tests need Chromium on the PATH: apt-get install chromium"
    browser = engine.chromium.launch(executable_path=program, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def run(transactional_db: None) -> Run:
    """A model measured in both directions on two problems; one helps, one harms."""
    made = factories.make_run(factories.make_entry("Model A"))
    for number, results in ((2, (2.0, 1.0, 1.5, 0.5)), (25, (1.0, 1.0, 0.4, 1.0))):
        trials = factories.make_replicate(made, factories.make_problem(number), results)
        for lanes, trial in enumerate(trials.values()):
            kernel = Artefact.objects.keep(KERNEL.format(lanes=lanes))
            Trial.objects.filter(pk=trial.pk).update(kernel=kernel)
        factories.make_submission(trials[Arm.SOLO_TIRX])
    rankings.refresh(made.entry)
    return made


@pytest.fixture
def visit(chromium: Browser, live_server: LiveServer, run: Run) -> Iterator[Visit]:
    context = chromium.new_context(viewport={"width": 1360, "height": 900})
    found = Visit(context.new_page(), live_server.url)
    found.watch()
    yield found
    context.close()


@pytest.fixture
def pages(run: Run) -> dict[str, str]:
    """One address of each kind, by name."""
    return {
        "board": "/",
        "entry": "/entries/model-a/",
        "problems": "/problems/",
        "problem": "/problems/02_problem/",
        "transfer": "/entries/model-a/02_problem/cutedsl2tirx/r1/",
        "trial": "/entries/model-a/trials/p02_r1_solo_tirx/",
        "run": f"/runs/{run.pk}/",
        "methods": "/methods/",
        "about": "/about/",
        "login": "/accounts/login/",
        "signup": "/accounts/signup/",
    }


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots of this test go."""
    return tmp_path
