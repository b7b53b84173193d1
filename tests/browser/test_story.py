import re

import pytest
from msgspec.json import encode
from playwright.sync_api import Page, expect

from penstock.events.pool import catch_up
from penstock.model.states import Status
from penstock.server.dashboard.navigation import PAGES
from tests.browser.conftest import PASSWORD, Site, looks, with_one_call

CUT_OFF = """() => [...document.querySelectorAll(".scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def died(site: Site, order: str) -> str:
    """A job that has become a dead letter."""

    async def ended() -> str:
        made = await site.app.enqueue_payload("charge", encode({"order": order}).decode())
        async for job in site.app.store.reader.watch([made.id]):
            status = job.status
        assert status is Status.DEAD_LETTER
        return made.id

    found: str = site.do(ended())
    return found


def given_up(site: Site, text: str) -> None:
    """An event that one consumer has applied and another has not."""

    def fail(tx: object, events: object) -> None:
        raise ValueError(text)

    def keep(tx: object, events: object) -> None: ...

    async def applied() -> None:
        site.app.consumer(name="picky", tries=1)(fail)
        site.app.consumer(name="plain", role="vital")(keep)
        word = text.replace(" ", "_")
        await site.app.events.append(word, session_id=text, platform=text, payload={"said": text})
        await catch_up(site.app)

    site.do(applied())


def log_in(page: Page, user: str) -> None:
    page.goto("/jobs")
    expect(page).to_have_url(re.compile(r"/login\?next=jobs"))
    page.locator("input[name=name]").fill(user)
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()


def test_a_day_of_an_operator_is_on_record(page: Page, site: Site, user: str) -> None:
    app = site.app
    dead_id = died(site, "a")
    site.do(app.schedule("nightly", app.types["charge"].new(order="n"), cron="0 3 * * *"))
    log_in(page, user)

    page.goto("/jobs/new?type=import")
    page.get_by_label("Payload (JSON)").fill('{"file": "rows.csv"}')
    page.get_by_role("button", name="Enqueue").click()
    expect(page.get_by_text("row 40 of 100")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1 .badge")).to_have_text("cancelled")

    page.goto(f"/jobs/{dead_id}")
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("status")).to_have_text("The job is requeued.")

    page.goto("/schedules")
    page.get_by_role("link", name="nightly").first.click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#content")).to_contain_text("paused")

    page.goto("/audit")
    for action in ("job.enqueue", "job.cancel", "job.requeue", "schedule.pause"):
        expect(page.locator("#content")).to_contain_text(action)
    expect(page.locator("#content")).to_contain_text(f"user:{user}")


def every_page(job_id: str) -> list[str]:
    paths = [page.path for page in PAGES]
    paths += [f"jobs/{job_id}", f"dead/letters/{job_id}", "dead/letters", "jobs/new?type=charge"]
    paths += ["schedules/show?name=nightly", "schedules/edit?name=nightly", "schedules/new"]
    paths += ["events", "events/log", "events/dead"]
    return [f"/{path}" for path in paths]


@pytest.mark.timeout(600)
def test_no_page_breaks_its_own_policy_or_keeps_anybody_out(
    page: Page, site: Site, axe: str
) -> None:
    """At every width, in light and dark, as axe judges it by the rules of WCAG."""
    hostile = "<img src=x onerror=alert(1)>"
    job_id = died(site, hostile)
    site.do(site.app.schedule("nightly", site.app.types["charge"].new(order=hostile), every=900))
    site.do(site.app.controls.pause(queue="data", reason=hostile, by=hostile))
    site.do(site.app.controls.set_limit(queue="data", depth=100_000))
    site.do(site.app.enqueue_payload("charge", '{"order": "b"}', queue="data"))
    given_up(site, hostile)
    with_one_call(page, site)
    for nth, path in enumerate(every_page(job_id)):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        library = path == "/api"
        if library:
            expect(page.locator("#reference #operations-tag-jobs")).to_be_visible()
        ours = page.locator("main img, main script, main [style]:not([data-drawn] *, #reference *)")
        assert ours.count() == 0
        for width, in_depth in looks(page, nth):
            dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            if library:
                expect(page.locator("html.dark-mode")).to_have_count(int(dark))
            assert page.evaluate("document.documentElement.scrollWidth") == width, path
            assert width < 1280 or page.evaluate(CUT_OFF) == [], path
            if in_depth:
                assert judged(page, axe) == [], (path, width)


def judged(page: Page, axe: str) -> list[str]:
    """What axe finds wrong with a page as it is shown now."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe)
    asked = {"resultTypes": ["violations"], "runOnly": WCAG}
    found = page.evaluate("(asked) => axe.run(document, asked)", asked)
    return [
        f"{each['id']}: {node['html']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
