from typing import Any

import pytest

from penstock import Penstock
from penstock.operate.journal import Journal
from penstock.server.access.identity import Scope
from penstock.server.dashboard.views.audit import place_of
from tests.server.dashboard.conftest import Browser
from tests.support.forgery import change_actor
from tests.support.places import Place


async def written(app: Penstock, count: int) -> None:
    journal = Journal(app.store)
    for n in range(count):
        await journal.write("user:ana", "job.cancel", f"job:{n}", tenant_id="north")


async def test_filters_stand_in_the_url(browser: Browser, app: Penstock) -> None:
    journal = Journal(app.store)
    await journal.write("user:ana", "job.cancel", "job:1", tenant_id="north")
    await journal.write("user:ana", "job.pause", "job:2", tenant_id="south")
    await journal.write("token:x", "schedule.run", "schedule:nightly", tenant_id="north")
    for query, rows in {
        "": 3,
        "actor=user:ana": 2,
        "action=job": 2,
        "action=job.pause": 1,
        "subject=schedule:nightly": 1,
        "tenant=north": 2,
        "tenant=north&actor=user:ana&since=&nonsense=1": 1,
        "since=2020-01-01T10:00": 3,
        "until=2020-01-01T10:00": 0,
        "limit=1": 1,
    }.items():
        text = await browser.text(f"audit?{query}")
        assert text.count('<tr id="entry-') == rows, query


async def test_a_filter_that_cannot_be_read_is_told_at_its_field(browser: Browser) -> None:
    text = await browser.text(f"audit?since=yesterday&actor={'x' * 300}&before=nonsense")
    assert 'id="wrong-since"' in text
    assert 'id="wrong-actor"' in text
    assert "notice bad" in text


async def test_pages_follow_one_another(browser: Browser, app: Penstock) -> None:
    await written(app, 120)
    seen = await browser.walk("audit?actor=user:ana", r'<tr id="entry-(\d+)"')
    assert seen == [str(n) for n in range(120, 0, -1)]


async def test_a_chain_that_holds_is_said_to(browser: Browser, app: Penstock) -> None:
    await written(app, 3)
    answer = await browser.send("audit/verify")
    assert "The chain is intact: all 3 entries" in answer.text
    assert len(await app.store.audit.page(0)) == 3


@pytest.mark.every_store
async def test_a_broken_chain_is_shown_where_it_breaks(
    browser: Browser, app: Penstock, place: Place
) -> None:
    await written(app, 80)
    change_actor(place, 17, "user:ana", "user:bob")
    answer = await browser.send("audit/verify")
    assert "The chain is broken at entry 17" in answer.text
    assert "it was changed after it was written" in answer.text
    assert 'id="entry-17" class="broken"' in answer.text
    assert answer.text.count('class="broken"') == 1
    assert 'id="entry-17" class="broken"' in await browser.text("audit?actor=user:bob")


@pytest.mark.parametrize(
    ("subject", "path"),
    [
        ("job:01JD0000000000000000000000", "jobs/01JD0000000000000000000000"),
        ("job:nonsense", None),
        ("group:ab12", "dead/groups/ab12"),
        ("schedule:a/b c", "schedules/show?name=a%2Fb+c&tenant=north"),
        ("queue:a&b", "jobs?queue=a%26b"),
        ("tokens", "access"),
        ("jobs", "jobs"),
        ("//evil.example", None),
        ("javascript:alert(1)", None),
        ("alert:a/b", "alerts/a%2Fb"),
    ],
)
async def test_a_subject_leads_to_its_page(subject: str, path: str | None, app: Penstock) -> None:
    entry = await Journal(app.store).write("a", "b", subject, tenant_id="north")
    assert place_of(entry) == path


async def test_who_belongs_to_a_tenant_sees_its_entries_and_verifies_nothing(
    log_in: Any, app: Penstock
) -> None:
    await written(app, 2)
    await Journal(app.store).write("user:eve", "job.cancel", "job:9", tenant_id="south")
    browser: Browser = await log_in(Scope.READ, tenant_id="south")
    assert (await browser.open("audit?tenant=north")).status_code == 403
    for query, rows in {"": 1, "tenant=south": 1, "actor=user:ana": 0}.items():
        text = await browser.text(f"audit?{query}")
        assert text.count('<tr id="entry-') == rows, query
    assert "job:9" in await browser.text("audit")
    assert "audit/verify" not in await browser.text("audit")
    assert (await browser.send("audit/verify")).status_code == 403
