import re
from typing import Any

from playwright.sync_api import Page, expect

from penstock.model.clock import iso, utc
from penstock.server.dashboard.navigation import PAGES
from tests.browser.conftest import Site, with_one_call


def enqueue(page: Page, type_name: str, payload: str) -> str:
    page.goto("/jobs")
    page.get_by_role("link", name="Enqueue a job").first.click()
    page.get_by_role("link", name=type_name).click()
    page.get_by_label("Payload (JSON)").fill(payload)
    page.get_by_role("button", name="Enqueue").click()
    expect(page.get_by_role("status")).to_have_text("The job is enqueued.")
    return page.url.rsplit("/", 1)[1]


def test_a_job_is_enqueued_watched_and_cancelled_without_a_reload(page: Page, site: Site) -> None:
    job_id = enqueue(page, "import", '{"file": "rows.csv"}')
    page.evaluate("window.sameDocument = true")
    expect(page.get_by_text("row 40 of 100")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "40.0")
    assert page.evaluate("window.sameDocument") is True
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1 .badge")).to_have_text("cancelled")
    actions = [entry.action for entry in site.do(site.app.store.audit.page(0, 100))]
    assert actions == ["job.enqueue", "job.cancel"]
    assert site.do(site.app.get(job_id)).status == "cancelled"


def test_what_is_typed_ticked_and_focused_survives_a_change(page: Page, site: Site) -> None:
    first = site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600)).id
    page.goto("/jobs")
    page.locator(f"#pick-{first}").check()
    page.get_by_label("Text").fill("half a wor")
    second = site.do(site.app.enqueue_payload("charge", '{"order": "b"}', delay=600)).id
    expect(page.locator(f"#job-{second}")).to_be_visible()
    expect(page.locator(f"#pick-{first}")).to_be_checked()
    expect(page.get_by_label("Text")).to_have_value("half a wor")
    expect(page.get_by_label("Text")).to_be_focused()
    expect(page.locator("[data-ticked]")).to_have_text("1 selected")


def test_ticked_jobs_are_acted_on_after_a_yes(page: Page, site: Site) -> None:
    for order in "abc":
        site.do(site.app.enqueue_payload("charge", f'{{"order": "{order}"}}', delay=600))
    page.goto("/jobs?status=pending")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", name="Pause 3 jobs?")).to_be_visible()
    page.get_by_role("button", name="Pause 3 jobs").click()
    expect(page.get_by_role("status")).to_have_text("3 jobs paused.")
    assert len(site.do(site.app.find(status="paused"))) == 3


def test_charts_can_be_read_off_and_follow_the_theme(page: Page, site: Site) -> None:
    site.do(site.app.enqueue_payload("charge", '{"order": "a"}'))
    page.goto("/")
    expect(page.locator("#content")).to_contain_text("Executions per minute")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_hostile_text_runs_nothing(page: Page, site: Site) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    job_id = site.do(
        site.app.enqueue_payload(
            "charge", f'{{"order": "{hostile}"}}', tags=(hostile,), key=hostile, tenant=hostile
        )
    ).id
    for path in ("/", "/jobs", f"/jobs/{job_id}", f"/jobs?text={hostile}", "/dead", "/audit"):
        page.goto(path)
        assert page.locator("main img").count() == 0
        assert page.locator("main script").count() == 0
    page.goto(f"/jobs/{job_id}")
    expect(page.locator("#document-payload")).to_contain_text("<img src=x onerror")


def test_everything_can_be_read_without_scripts(chromium: Any, site: Site) -> None:
    job_id = site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600)).id
    context = chromium.new_context(base_url=site.address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/jobs")
    page.get_by_role("link", name="charge").first.click()
    expect(page.get_by_text("It is not due before")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("The job is cancelled.")
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert site.do(site.app.get(job_id)).status == "cancelled"
    context.close()


def test_everything_is_reached_with_the_keyboard(page: Page, site: Site) -> None:
    site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600))
    page.goto("/jobs")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
              const at = document.activeElement;
              const shown = getComputedStyle(at).outlineStyle;
              return [at.tagName, at.name || at.textContent.trim(), shown];
            }"""
        )
        if found[0] == "BODY":
            break
        assert found[2] != "none", found
        reached.add(found[1])
    assert {
        "Enqueue a job",
        "text",
        "type",
        "queue",
        "Find",
        "More filters",
        "id",
        "action",
    } <= reached


def test_a_phone_scrolls_in_one_direction_only_and_has_every_page_and_theme(
    chromium: Any, site: Site
) -> None:
    job_id = site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600)).id
    context = chromium.new_context(
        base_url=site.address, viewport={"width": 360, "height": 740}, is_mobile=True
    )
    page = context.new_page()
    for path in ("/", f"/jobs/{job_id}", "/jobs/new?type=charge", "/jobs"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    for column in ("Attempts", "Created", "Took"):
        expect(page.locator(f'#job-{job_id} [data-label="{column}"]')).to_be_visible()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.get_by_role("button", name="Menu").click()
    for each in PAGES:
        link = page.locator(f'nav.side a.tab[href="/{each.path}"]')
        expect(link).to_be_in_viewport(ratio=1)
    context.close()


def test_times_are_told_in_the_zone_of_the_reader_and_utc_stays_behind_them(
    chromium: Any, site: Site
) -> None:
    job_id = site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600)).id
    context = chromium.new_context(base_url=site.address, timezone_id="Asia/Tokyo")
    page = context.new_page()
    created = site.do(site.app.get(job_id)).created_at
    page.goto(f"/jobs/{job_id}")
    time = page.locator("dt", has_text="Created").locator("+ dd time").first
    local = utc(created + 9 * 3_600_000)
    expect(time).to_have_text(re.compile(f"{local:%H:%M:%S}$"))
    expect(time).to_have_attribute("title", f"{iso(created)[:-1].replace('T', ' ')} UTC")
    expect(page.locator(".side")).to_contain_text("Times in Asia/Tokyo")
    page.goto("/jobs")
    page.get_by_text("More filters").click()
    field = page.get_by_label("Created since (your time)")
    field.fill(f"{local:%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Find").click()
    expect(page).to_have_url(re.compile(f"since={utc(created):%Y-%m-%dT%H}%3A{utc(created):%M}"))
    expect(field).to_have_value(f"{local:%Y-%m-%dT%H:%M}")
    expect(page.locator(f"#job-{job_id}")).to_be_visible()
    context.close()


def test_a_page_says_that_its_connection_is_lost_and_comes_back(page: Page, site: Site) -> None:
    page.route("**/live", lambda route: route.fulfill(status=404))
    page.goto("/jobs")
    sign = page.locator("#connection")
    expect(sign).to_have_text("connection lost")
    made = site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600)).id
    page.unroute("**/live")
    expect(sign).to_have_text("live")
    expect(page.locator(f"#job-{made}")).to_be_visible()


def test_a_slash_searches_and_an_id_is_copied(page: Page, site: Site) -> None:
    job_id = site.do(site.app.enqueue_payload("charge", '{"order": "a"}', delay=600)).id
    page.goto("/jobs")
    page.keyboard.press("/")
    expect(page.get_by_label("Text")).to_be_focused()
    expect(page.get_by_label("Text")).to_have_value("")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/jobs/{job_id}")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == job_id


def test_a_call_of_the_api_is_tried_out_as_who_is_logged_in(page: Page, site: Site) -> None:
    with_one_call(page, site)
    page.goto("/api#/jobs/enqueue")
    drawn = page.locator("#operations-jobs-enqueue")
    drawn.locator("textarea").fill('{"type": "charge", "payload": {"order": "a"}, "delay": 600}')
    drawn.get_by_role("button", name="Execute").click()
    answer = drawn.locator(".live-responses-table .response .response-col_status")
    expect(answer).to_contain_text("201")
    [job] = site.do(site.app.find(type="charge"))
    assert job.created_by == "local"
