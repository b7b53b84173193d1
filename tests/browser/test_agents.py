"""The agent workers' pages in a real browser: for everybody, at every width, in light and dark."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.apps.agents.furnish import TENANT, Furnished, furnish, receiving, remember
from tests.browser.conftest import Site, looks
from tests.browser.test_story import CUT_OFF, judged

INSIDE = """() => [...document.querySelectorAll(".graph .node")].filter((node) => {
  const box = node.querySelector("rect").getBoundingClientRect();
  return [...node.querySelectorAll("text")].some((text) =>
    text.getBoundingClientRect().right > box.right);
}).length"""


@pytest.fixture
def extended() -> dict[str, dict[str, Any]]:
    webhooks = {"allow": ["127.0.0.0/8"], "jobs": False, "events": False}
    return {"events": {}, "agents": {"schedules": False, "webhooks": webhooks}}


@pytest.fixture
def have(site: Site) -> Furnished:
    """Something of everything."""

    async def made() -> Furnished:
        async with receiving() as receiver:
            return await furnish(site.app, receiver.url)

    found: Furnished = site.do(made())
    return found


@pytest.mark.timeout(300)
def test_every_page_of_the_agent_workers_is_for_everybody(
    page: Page, site: Site, have: Furnished, axe: str
) -> None:
    one = (
        f"/memories/{have.merged}",
        f"/memories/{have.merged}/delete",
        f"/sessions/{have.session}",
        f"/webhooks/{have.webhook}",
        f"/webhooks/{have.webhook}/delete",
    )
    lists = ("/memories", "/memories?view=graph", "/memories?text=tea", "/sessions", "/patterns")
    faults: list[tuple[str, int, object]] = []
    paths = (*lists, "/webhooks", "/quotas", "/exports", "/erase", *one)
    for nth, path in enumerate(paths):
        page.goto(f"/agents{path}")
        for width, in_depth in looks(page, nth):
            wide = page.evaluate("document.documentElement.scrollWidth") - width
            cut, outside = page.evaluate(CUT_OFF), page.evaluate(INSIDE)
            found = {"wide": wide, "cut": cut, "outside": outside}
            if in_depth:
                found["axe"] = judged(page, axe)
            faults += [(path, width, each) for each in found.items() if each[1]]
        assert page.locator("main img, main script").count() == 0
    assert faults == []


def test_memories_are_ticked_and_merged(page: Page, site: Site) -> None:
    site.do(remember(site.app, "Ada lives in Turin.", "The bank of Ada is far away."))
    page.goto("/agents/memories")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Merge").click()
    expect(page.get_by_role("status")).to_contain_text("2 memories became one")
    page.get_by_role("link", name="Graph").click()
    expect(page.locator(".graph.wide .node")).to_have_count(3)
    page.locator(".graph.wide .node").last.click()
    expect(page).to_have_url(re.compile(r"/agents/memories/\w+$"))


def test_a_memory_appears_while_the_page_is_open_and_is_edited(page: Page, site: Site) -> None:
    page.goto("/agents/memories")
    expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()
    [memory] = site.do(remember(site.app, "Ada lives in Turin."))
    expect(page.locator(f"#memory-{memory.id}")).to_be_visible()
    page.get_by_role("button", name="Edit: Ada lives").click()
    dialog = page.locator(f"#edit-{memory.id}")
    dialog.get_by_label("What is remembered").fill("Ada lives in Oslo.")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved: Ada lives in Oslo.")


def test_a_test_of_a_webhook_shows_its_answer(page: Page, site: Site, have: Furnished) -> None:
    page.goto(f"/agents/webhooks/{have.webhook}")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("status")).to_contain_text("A test is on its way")
    expect(page.get_by_text("webhook.test").first).to_be_visible()
    assert TENANT in page.content()
