"""The recorder's pages in a real browser: read by everybody, at every width, in light and dark."""

import re

import pytest
from playwright.sync_api import Page, expect

from penstock.apps.recorder.demo import REVIEW
from tests.apps.recorder.sessions import learn, record
from tests.browser.conftest import WIDTHS, Site, looks
from tests.browser.test_story import CUT_OFF, judged


@pytest.mark.timeout(300)
def test_every_page_of_the_recorder_is_for_everybody(page: Page, site: Site, axe: str) -> None:
    session = site.do(record(site.app, REVIEW))
    site.do(record(site.app, session="s2"))
    site.do(learn(site.app))
    paths = ["", f"/sessions/{session}", f"/sessions/{session}/delete", "/search?text=budget"]
    for nth, path in enumerate((*paths, "/metrics", "/learnings", "/sanitiser")):
        page.goto(f"/recorder{path}")
        for width, in_depth in looks(page, nth):
            assert page.evaluate("document.documentElement.scrollWidth") == width, path
            assert page.evaluate(CUT_OFF) == [], path
            if in_depth:
                assert judged(page, axe) == [], (path, width)
        assert page.locator("main img, main script").count() == 0


def test_a_chart_narrows_with_its_window_before_a_script_redraws_it(page: Page, site: Site) -> None:
    # The first listener of the page: charts.js never receives the event.
    page.add_init_script("addEventListener('resize', (event) => event.stopImmediatePropagation())")
    site.do(record(site.app))
    page.goto("/recorder/metrics")
    expect(page.locator("[data-drawn] canvas").first).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_bar_of_the_timeline_leads_to_its_turn(page: Page, site: Site) -> None:
    session = site.do(record(site.app))
    page.goto(f"/recorder/sessions/{session}")
    page.get_by_role("link", name=re.compile("^Turn 2")).click()
    expect(page).to_have_url(re.compile(r"#turn-2$"))
    expect(page.locator("#turn-2")).to_be_in_viewport()
    expect(page.locator("#turn-2")).to_contain_text("Log the budget too")


def test_a_session_appears_while_the_page_is_open(page: Page, site: Site) -> None:
    page.goto("/recorder")
    expect(page.get_by_text("Nothing was recorded yet.")).to_be_visible()
    session = site.do(record(site.app))
    expect(page.locator(f"#session-{session}")).to_be_visible()


def test_a_learning_is_edited_in_a_dialog_and_approved(page: Page, site: Site) -> None:
    site.do(record(site.app))
    learning = site.do(learn(site.app))
    page.goto("/recorder/learnings")
    page.get_by_role("button", name="Edit Keep a retry budget").click()
    dialog = page.locator(f"#edit-{learning}")
    dialog.get_by_label("Title").fill("Budgets belong to work")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved: Budgets belong to work.")
    page.get_by_role("button", name="Approve Budgets").click()
    expect(page.locator(f"#learning-{learning} .badge").first).to_have_text("approved")
