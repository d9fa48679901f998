"""A reader's walk through the site in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from leaderboard.models import Entry, Run
from leaderboard.services import rankings
from tests.browser.conftest import Visit
from tests.leaderboard import factories

pytestmark = pytest.mark.browser

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_from_the_board_over_a_cell_to_code_in_every_pane(visit: Visit) -> None:
    page = visit.page
    visit.open("/")
    expect(page.locator("h1")).to_contain_text("Does a skill")
    page.locator(".rankings").first.get_by_role("link", name="Model A").click()
    page.locator(".cell.help a").first.click()
    expect(page.locator(".verdict")).to_contain_text("helped")
    for anchor in ("source", "conditioned", "solo"):
        expect(page.locator(f"#{anchor} .code-box")).to_contain_text("def solve")
    expect(page.locator("#skill .code-box")).to_contain_text("What solo_cutedsl showed")
    expect(page.locator("table.diff mark").first).to_be_visible()
    assert visit.complaints == []


def test_a_line_number_leads_to_its_line(visit: Visit, pages: dict[str, str]) -> None:
    visit.open(pages["transfer"])
    visit.page.locator("#source-L3 .no").click()
    assert visit.page.url.endswith("#source-L3")
    ground = visit.page.locator("#source-L3").evaluate("e => getComputedStyle(e).backgroundColor")
    other = visit.page.locator("#source-L4").evaluate("e => getComputedStyle(e).backgroundColor")
    assert ground != other


@pytest.mark.parametrize(("scheme", "width"), [("light", 1360), ("dark", 1360), ("light", 390)])
def test_no_page_scrolls_sideways_complains_or_asks_elsewhere(
    visit: Visit, pages: dict[str, str], shots: Path, scheme: str, width: int
) -> None:
    page = visit.page
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 844})
    for name, path in pages.items():
        visit.open(path)
        page.screenshot(path=shots / f"{name}.png", full_page=True)
        assert page.evaluate(OVERFLOW) == 0, name
        assert (shots / f"{name}.png").stat().st_size > 0
    assert visit.complaints == []


def test_light_and_dark_differ(visit: Visit) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        visit.open("/")
        grounds.append(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(252, 252, 250)", "rgb(17, 20, 21)"]


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('href') || ''"))


def test_the_keyboard_reaches_the_first_cell_and_opens_it(
    visit: Visit, pages: dict[str, str]
) -> None:
    page = visit.page
    visit.open(pages["entry"])
    for _ in range(40):
        page.keyboard.press("Tab")
        if "/cutedsl2tirx/" in focused(page):
            break
    assert focused(page) == "/entries/model-a/02_problem/cutedsl2tirx/r1/"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_be_visible()


def test_the_first_tab_offers_to_skip_to_the_content(visit: Visit) -> None:
    visit.open("/")
    visit.page.keyboard.press("Tab")
    assert focused(visit.page) == "#main"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("document.activeElement.id") == "main"


def test_the_board_fills_by_itself_while_a_run_goes_on(visit: Visit, run: Run) -> None:
    page = visit.page
    entry = factories.make_entry("Model B")
    second = factories.make_run(entry)
    factories.make_replicate(second, factories.make_problem(36), (2.0, None, 1.5, None))
    visit.open("/")
    expect(page.locator(".progress-line")).to_contain_text("2 of 4 trials done")
    second.trials.all().delete()
    factories.make_replicate(second, factories.make_problem(36))
    rankings.refresh(Entry.objects.get(pk=entry.pk))
    expect(page.locator(".rankings").first).to_contain_text("Model B", timeout=15_000)
    expect(page.locator(".progress-line")).to_have_count(0)
    assert visit.complaints == []


def test_a_swap_keeps_opened_details_and_the_focus(visit: Visit, run: Run) -> None:
    page = visit.page
    trial = factories.make_trial(
        factories.make_run(factories.make_entry("Model B")),
        factories.make_problem(49),
        run.trials.all()[0].coordinate.arm,
    )
    for sequence in (1, 2):
        trial.events.create(
            sequence=sequence, kind="note", elapsed_sec=1, body={"text": f"note {sequence}"}
        )
    visit.open(f"/entries/model-b/trials/{trial.coordinate}/")
    page.locator("#turn-1 summary").click()
    trial.events.create(sequence=3, kind="note", elapsed_sec=2, body={"text": "note 3"})
    expect(page.locator("#turn-3")).to_be_visible(timeout=15_000)
    assert page.locator("#turn-1").get_attribute("open") is not None
    assert page.locator("#turn-2").get_attribute("open") is None


def test_every_page_reads_without_javascript(visit: Visit, pages: dict[str, str]) -> None:
    browser = visit.page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name, path in pages.items():
        page.goto(f"{visit.site}{path}")
        assert page.locator("h1").inner_text(), name
    context.close()


def test_paper_shows_whole_kernels(visit: Visit, pages: dict[str, str]) -> None:
    visit.page.emulate_media(media="print")
    visit.open(pages["transfer"])
    box = visit.page.locator("#source .code-box")
    assert box.evaluate("e => e.scrollHeight - e.clientHeight") == 0
    expect(visit.page.locator("header.site nav")).to_be_hidden()
