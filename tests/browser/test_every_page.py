"""Every page of the core and of all shipped extensions, visited once by one logged-in user.

The list of pages comes from the server's routes. A new page without parameters is visited
without a change here; a new page with parameters fails the test until it has an address.
"""

from contextlib import closing
from itertools import cycle
from typing import Any

import apsw
import pytest
from playwright.sync_api import Page, expect

from penstock.app.extensions import installed
from penstock.apps.recorder.demo import REVIEW
from penstock.server.dashboard.route import PageRoute
from proof import TIER
from tests.apps.agents.furnish import furnish as furnish_agents
from tests.apps.agents.furnish import receiving
from tests.apps.recorder.sessions import learn, record
from tests.browser.conftest import (
    PASSWORD,
    SCHEMES,
    WIDTHS,
    Site,
    show,
    with_one_call,
)
from tests.browser.test_story import given_up, judged
from tests.server.dashboard.furnish import furnish
from tests.server.dashboard.test_walk import ENDLESS
from tests.server.dashboard.test_walk import pages as core_pages

LOGIN, REFERENCE = "/login", "/api"


@pytest.fixture
def extended() -> dict[str, dict[str, Any]]:
    webhooks = {"allow": ["127.0.0.0/8"], "jobs": False, "events": False}
    return {name: {} for name in installed()} | {
        "agents": {"schedules": False, "webhooks": webhooks}
    }


@pytest.fixture
def addresses(site: Site) -> dict[str, str]:
    """Put a record on every page; return an address for each page that needs parameters."""

    async def furnished() -> dict[str, str]:
        core = await furnish(site.app, site.api, "plain")
        session = await record(site.app, REVIEW)
        await learn(site.app)
        async with receiving() as receiver:
            agents = await furnish_agents(site.app, receiver.url)
        recorded = f"/recorder/sessions/{session}"
        memory = f"/agents/memories/{agents.merged}"
        webhook = f"/agents/webhooks/{agents.webhook}"
        return {
            **{route: f"/{address}" for route, address in core_pages(core).items()},
            "/agents/memories/{memory_id}": memory,
            "/agents/memories/{memory_id}/delete": f"{memory}/delete",
            "/agents/sessions/{session_id}": f"/agents/sessions/{agents.session}",
            "/agents/webhooks/{webhook_id}": webhook,
            "/agents/webhooks/{webhook_id}/delete": f"{webhook}/delete",
            "/recorder/sessions/{session_id}": recorded,
            "/recorder/sessions/{session_id}/delete": f"{recorded}/delete",
            "/recorder/search": "/recorder/search?text=budget",
        }

    given_up(site, "plain")
    found: dict[str, str] = site.do(furnished())
    silence_worker(site, "plain")
    return found


def silence_worker(site: Site, name: str) -> None:
    """Make the last heartbeat of a worker a minute old: its row looks different then."""
    path = site.app.settings.url.removeprefix("sqlite:///")
    with closing(apsw.Connection(path)) as file:
        file.set_busy_timeout(30_000)
        file.execute(
            "UPDATE workers SET heartbeat_at = heartbeat_at - 60000 WHERE name = ?", [name]
        )
        assert file.changes() == 1


def page_routes(site: Site) -> set[str]:
    """Return the paths of all pages that a browser can open."""
    routes = [route for route in site.api.routes if isinstance(route, PageRoute)]
    return {route.path for route in routes if "GET" in (route.methods or ())} - ENDLESS


def log_in(page: Page, user: str) -> None:
    page.locator("input[name=name]").fill(user)
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()


@pytest.mark.quick
@pytest.mark.timeout(300)
def test_every_page_opens_fits_its_window_and_is_accessible(
    page: Page, site: Site, user: str, addresses: dict[str, str], axe: str
) -> None:
    with_one_call(page, site)
    routes = sorted(page_routes(site), key=lambda route: (route != LOGIN, route))
    looks = list(zip(WIDTHS, cycle(SCHEMES), strict=False))
    faults: list[tuple[str, int, object]] = []
    # A resize costs as much as a small page: each width takes one run of pages.
    for start, (width, scheme) in enumerate(looks):
        show(page, width, scheme)
        for route in routes[start :: len(looks)]:
            address = addresses.get(route, route)
            assert "{" not in address, f"give {route} an address in the fixture `addresses`"
            reply = page.goto(address, wait_until="domcontentloaded")
            assert reply is not None
            if route == REFERENCE:
                expect(page.locator("#operations-tag-jobs")).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth") - width
            # Half of the processor time would be axe's; its run over these pages is thorough.
            found = judged(page, axe) if TIER != "test" else []
            results = {"status": reply.status - 200, "wide": wide, "axe": found}
            faults += [(address, width, result) for result in results.items() if result[1]]
            if route == LOGIN:
                log_in(page, user)
    assert faults == []
