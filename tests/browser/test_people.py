"""What the three people do, in a real browser: enter, start, review."""

import pytest
from playwright.sync_api import Page, expect

from leaderboard.models import Entry, Review, Run
from tests.browser.conftest import Visit
from tests.leaderboard import factories

pytestmark = pytest.mark.browser

KEY = "sk-canary-in-the-browser"


def sign_in(visit: Visit, name: str) -> Page:
    visit.open("/accounts/login/")
    visit.page.get_by_label("Username").fill(name)
    visit.page.get_by_label("Password").fill(name)
    visit.page.get_by_role("button", name="Log in").click()
    return visit.page


def test_a_vendor_enters_a_model_and_the_key_never_comes_back(
    visit: Visit, mailroom: object
) -> None:
    factories.make_user("vera")
    page = sign_in(visit, "vera")
    page.get_by_role("link", name="Enter a model").click()
    page.get_by_label("Public name").fill("Model V")
    page.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
    page.get_by_label("Model id").fill("model-v-1")
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Enter and check the endpoint").click()
    expect(page.locator("h1")).to_have_text("Model V")
    expect(page.locator(".state")).to_contain_text("Being checked")
    assert KEY not in page.content()
    Entry.objects.filter(name="Model V").update(
        preflight="failed", preflight_at="2026-01-01T00:00Z", preflight_summary="It refused."
    )
    # The page asks by itself, and the answer comes without a reload.
    expect(page.get_by_text("It does not answer")).to_be_visible(timeout=15_000)
    assert visit.complaints == []


def test_a_vendor_starts_a_run_and_watches_it(visit: Visit, mailroom: object) -> None:
    factories.make_entry("Model V", owner=factories.make_user("vera"))
    page = sign_in(visit, "vera")
    page.get_by_role("link", name="Model V").first.click()
    page.get_by_role("link", name="Start a run").click()
    page.get_by_label("02 Problem 2").check()
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_text("of 4 trials done")).to_be_visible()
    assert Run.objects.filter(entry__name="Model V").count() == 1
    assert visit.complaints == []


def test_a_reviewer_rejects_a_transfer_and_the_board_says_so(
    visit: Visit, pages: dict[str, str]
) -> None:
    factories.make_user("rex", reviewer=True)
    page = sign_in(visit, "rex")
    visit.open(pages["transfer"])
    page.get_by_label("Verdict").select_option("reward_hack")
    page.get_by_label("Note").fill("It returns a cached output.")
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.locator(".verdict")).to_contain_text("Rejected in review.")
    visit.open("/")
    expect(page.locator(".rankings").first).to_contain_text("1 rejected in review")
    assert Review.objects.get().verdict == "reward_hack"
    assert visit.complaints == []
