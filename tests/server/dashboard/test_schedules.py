import asyncio
import re
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.model.job import OPTIONS
from penstock.model.schedule import Misfire, ScheduleKind, tick_job
from penstock.server.access.identity import Scope
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import a_schedule
from tests.support.options import SAMPLES, columns, typed

NIGHTLY = {
    "name": "nightly",
    "type": "mail.send",
    "payload": '{"to": "a"}',
    "kind": "cron",
    "cron": "0 3 * * *",
    "zone": "Europe/Berlin",
    "misfire": "skip",
    "new": "yes",
}


async def actions(app: Penstock) -> list[str]:
    return [entry.action for entry in await app.store.audit.page(0, 1_000)]


async def test_the_next_five_runs_are_told_in_their_zone_and_in_utc(
    browser: Browser, app: Penstock
) -> None:
    # The clocks of Berlin are put back on 25 October 2026, between the second and the third.
    first = 1_792_803_600_000
    await app.store.schedules.put(a_schedule("nightly", next_run_at=first, misfire=Misfire.SKIP))
    text = await browser.text("schedules/show?name=nightly")
    local = re.findall(r'<tr><td class="date">\w{3} (2026-10-\d\d \d\d:\d\d:\d\d \w+)</td>', text)
    assert local == [
        "2026-10-24 03:00:00 CEST",
        "2026-10-25 03:00:00 CET",
        "2026-10-26 03:00:00 CET",
        "2026-10-27 03:00:00 CET",
        "2026-10-28 03:00:00 CET",
    ]
    assert '<span class="badge is-on"><span>on</span></span>' in text
    assert "2026-10-24 01:00:00 UTC" in text
    assert "2026-10-25 02:00:00 UTC" in text
    assert "what was missed is left out" in text


async def test_a_schedule_is_run_paused_resumed_and_removed(
    browser: Browser, app: Penstock
) -> None:
    await app.store.schedules.put(a_schedule("nightly"))
    name = {"name": "nightly"}
    assert "0 3 * * * (Europe/Berlin)" in await browser.text("schedules")
    text = await browser.follow(await browser.send("schedules/run", name))
    assert "The schedule has enqueued this job." in text
    [job] = await app.find()
    assert job.type == "mail.send"
    text = await browser.follow(await browser.send("schedules/pause", name))
    assert "It is paused;" in text
    assert 'action="/schedules/resume"' in await browser.text("schedules")
    await browser.follow(await browser.send("schedules/resume", name))
    assert "Remove the schedule nightly?" in await browser.text("schedules/remove?name=nightly")
    text = await browser.follow(await browser.send("schedules/remove", name))
    assert "nightly is removed." in text
    assert await app.store.schedules.known() == []
    assert await actions(app) == [
        "schedule.run",
        "schedule.pause",
        "schedule.resume",
        "schedule.remove",
    ]
    assert (await browser.open("schedules/show?name=nightly")).status_code == 404


async def test_an_action_leads_back_to_where_it_was_taken(browser: Browser, app: Penstock) -> None:
    await app.store.schedules.put(a_schedule("nightly"))
    page = "http://localhost/schedules?tenant="
    answer = await browser.send("schedules/pause", {"name": "nightly"}, Referer=page)
    assert answer.headers["location"] == "/schedules?tenant="


async def test_a_form_schedules(browser: Browser, app: Penstock) -> None:
    assert "&#34;copies&#34;: 1" in await browser.text("schedules/new?type=mail.send")
    text = await browser.follow(await browser.send("schedules/edit", NIGHTLY))
    assert "nightly is scheduled." in text
    made = await app.store.schedules.get("nightly")
    assert made is not None
    assert (made.kind, made.expression, made.zone, made.misfire, made.by_operator) == (
        ScheduleKind.CRON,
        "0 3 * * *",
        "Europe/Berlin",
        Misfire.SKIP,
        True,
    )
    assert await actions(app) == ["schedule.put"]


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ({"kind": "interval", "every": "900"}, ScheduleKind.INTERVAL),
        ({"kind": "once", "at": "2100-01-01T08:00"}, ScheduleKind.ONCE),
    ],
)
async def test_every_kind_can_be_scheduled(
    when: dict[str, str], kind: ScheduleKind, browser: Browser, app: Penstock
) -> None:
    await browser.follow(await browser.send("schedules/edit", {**NIGHTLY, **when}))
    made = await app.store.schedules.get("nightly")
    assert made is not None
    assert made.kind is kind
    if kind is ScheduleKind.ONCE:
        assert made.starts_at == 4_102_470_000_000  # eight in Berlin is seven in UTC
    assert "Edit nightly" in await browser.text("schedules/edit?name=nightly")


async def test_a_preview_shows_the_runs_and_schedules_nothing(
    browser: Browser, app: Penstock
) -> None:
    answer = await browser.send("schedules/edit", {**NIGHTLY, "preview": "yes"})
    assert answer.status_code == 200
    assert len(re.findall(r"<tr><td>\w{3} \d{4}-\d\d-\d\d 03:00:00 CES?T</td>", answer.text)) == 5
    assert await app.store.schedules.known() == []
    assert await actions(app) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cron": "nonsense"}, "cron"),
        ({"cron": ""}, "cron"),
        ({"kind": ""}, "kind"),
        ({"kind": "interval", "every": "often"}, "every"),
        ({"kind": "interval", "every": "-1"}, "every"),
        ({"kind": "once", "at": "soon"}, "at"),
        ({"kind": "once", "at": "2001-01-01T00:00"}, "at"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"type": "nope"}, "type"),
        ({"payload": "{"}, "payload"),
        ({"payload": "[]"}, "payload"),
        ({"payload": '{"to": 7}'}, "payload"),
        ({"name": "no good name"}, "name"),
        ({"max_runs": "many"}, "max_runs"),
        ({"priority": "11"}, "priority"),
        ({"end": "2001-01-01T00:00"}, "end"),
        ({"misfire": "maybe"}, "misfire"),
    ],
)
async def test_what_is_wrong_stands_at_its_field(
    change: dict[str, str], field: str, browser: Browser, app: Penstock
) -> None:
    answer = await browser.send("schedules/edit", {**NIGHTLY, **change})
    assert answer.status_code == 422
    assert f'id="wrong-{field}"' in answer.text
    assert await app.store.schedules.known() == []


async def test_a_change_keeps_what_the_form_does_not_show(browser: Browser, app: Penstock) -> None:
    before = await app.store.schedules.put(
        a_schedule(
            "nightly",
            options='{"max_retries": 7, "queue": "slow", "tags": ["x"]}',
            expires_at=4_200_000_000_000,
        )
    )
    form = await browser.text("schedules/edit?name=nightly")
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    fields |= {"payload": '{"to": "b"}', "type": "mail.send", "kind": "cron", "cron": "0 4 * * *"}
    fields |= {"misfire": "one"}
    fields.pop("preview")
    text = await browser.follow(await browser.send("schedules/edit", fields))
    assert "nightly is scheduled." in text
    after = await app.store.schedules.get("nightly")
    assert after is not None
    assert (after.id, after.expression, after.payload) == (before.id, "0 4 * * *", '{"to":"b"}')
    assert after.expires_at == before.expires_at
    for kept in ('"max_retries":7', '"queue":"slow"', '"tags":["x"]'):
        assert kept in after.options


async def test_every_option_of_its_jobs_can_be_said_and_is_shown_again(
    browser: Browser, app: Penstock
) -> None:
    offered = [o for o in OPTIONS.values() if o.in_schedules and not o.local]
    said = {option.name: typed(SAMPLES[option.name]) for option in offered}
    await browser.follow(await browser.send("schedules/edit", {**NIGHTLY, **said}))
    made = await app.store.schedules.get("nightly")
    assert made is not None
    job = tick_job(made, "", 0, run=1, previous=None)
    assert columns(job, said) == {o.name: o.stored(SAMPLES[o.name]) for o in offered}
    form = await browser.text("schedules/edit?name=nightly")
    again = {k: unescape(v) for k, v in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
    again |= {"payload": '{"to": "a"}', "type": "mail.send", "kind": "cron", "misfire": "skip"}
    again.pop("preview")
    await browser.follow(await browser.send("schedules/edit", again))
    after = await app.store.schedules.get("nightly")
    assert after is not None
    assert after.options == made.options


async def test_a_new_schedule_does_not_replace_one_of_the_same_name(
    browser: Browser, app: Penstock
) -> None:
    await app.store.schedules.put(a_schedule("nightly", expression="0 5 * * *"))
    answer = await browser.send("schedules/edit", NIGHTLY)
    assert answer.status_code == 422
    assert 'id="wrong-name"' in answer.text
    kept = await app.store.schedules.get("nightly")
    assert kept is not None
    assert kept.expression == "0 5 * * *"


async def test_a_thousand_schedules_come_in_pages(browser: Browser, app: Penstock) -> None:
    made = (app.store.schedules.put(a_schedule(f"s{n:04}")) for n in range(1_001))
    await asyncio.gather(*made)
    seen = await browser.walk("schedules?page=1", r'">(s\d{4})</a><span class="under">')
    assert seen == [f"s{n:04}" for n in range(1_001)]


async def test_who_belongs_to_a_tenant_schedules_for_it(
    log_in: Any, app: Penstock, server: FastAPI
) -> None:
    await app.store.schedules.put(a_schedule("nightly", tenant_id="south"))
    browser: Browser = await log_in(Scope.OPERATE, Scope.ENQUEUE, tenant_id="north")
    refused = await browser.send("schedules/edit", {**NIGHTLY, "tenant": "south"})
    assert (refused.status_code, "is not yours" in refused.text) == (422, True)
    await browser.follow(await browser.send("schedules/edit", NIGHTLY))
    assert {each.tenant_id for each in await app.store.schedules.known()} == {"south", "north"}
    text = await browser.text("schedules")
    assert text.count('<tr id="schedule-') == 1
    await browser.send("schedules/remove", {"name": "nightly", "tenant": "south"})
    assert len(await app.store.schedules.known()) == 2
    await browser.send("schedules/remove", {"name": "nightly"})
    assert [each.tenant_id for each in await app.store.schedules.known()] == ["south"]


async def test_nobody_schedules_more_often_than_once_a_second(
    browser: Browser, app: Penstock
) -> None:
    often = NIGHTLY | {"kind": "interval", "every": "0.5"}
    answer = await browser.send("schedules/edit", often)
    assert answer.status_code == 422
    assert "at least a second" in answer.text
    assert await app.store.schedules.known() == []


async def test_what_makes_jobs_is_offered_to_those_who_may_enqueue(
    log_in: Any, app: Penstock
) -> None:
    await app.store.schedules.put(a_schedule("nightly"))
    operator: Browser = await log_in(Scope.OPERATE)
    for page in ("schedules", "schedules/show?name=nightly"):
        text = await operator.text(page)
        assert "Pause" in text
        assert "Run now" not in text
        assert "schedules/edit" not in text
        assert "schedules/new" not in text
    for path in ("schedules/run", "schedules/edit"):
        assert (await operator.send(path, NIGHTLY)).status_code == 403
    assert await app.find() == []
