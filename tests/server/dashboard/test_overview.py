from itertools import pairwise
from typing import Any

import pytest
from msgspec.json import encode

from penstock import Penstock
from penstock.model.alert import Alert, AlertState, Turn
from penstock.model.alert_rules import Severity
from penstock.model.states import Status
from penstock.server.access.identity import Scope
from penstock.server.app import create_server
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, buried, claim_all, completed, failed
from tests.server.dashboard.conftest import Browser, a_browser
from tests.server.dashboard.furnish import a_beat


async def ran(app: Penstock, count: int) -> None:
    await app.enqueue_many([app.types["mail.send"].new(to=str(n)) for n in range(count)])
    leases = await claim_all(app.store, types=("mail.send",))
    ended = [completed(lease, '"ok"', 40) for lease in leases[2:]]
    await app.store.jobs.settle(OWNER, [failed(leases[0]), buried(leases[1]), *ended])


async def test_an_empty_installation_says_so(browser: Browser) -> None:
    text = await browser.text("")
    assert "No jobs are waiting or running." in text
    assert "No worker is running." in text


@pytest.mark.every_store
@pytest.mark.parametrize("span", ["1h", "24h", "7d"])
async def test_the_figures_are_those_of_the_store(
    span: str, browser: Browser, app: Penstock
) -> None:
    await ran(app, 11)
    text = await browser.text(f"?span={span}")
    assert '<a class="value" href="/jobs?status=completed">9</a>' in text
    assert '<a class="value" href="/jobs?status=dead_letter">90 %</a>' in text
    assert "1 job died, 1 attempt failed" in text
    assert text.count("data-chart=") == 2
    assert f'aria-current="true">{span}</a>' in text


@pytest.mark.parametrize(
    ("minutes", "span"),
    [([2], "10m"), ([2, 9], "10m"), ([2, 40], "1h"), ([5 * 60], "24h"), ([3 * 24 * 60], "7d")],
)
async def test_the_span_is_chosen_by_what_there_is_to_see(minutes: list[int], span: str) -> None:
    clock = FakeClock()
    app = Penstock("sqlite:///:memory:", clock=clock)
    app.job(name="mail.send", queue="mail")(lambda to: to)
    async with app, a_browser(create_server(app, trusts_callers=True)) as browser:
        gone = sorted(minutes, reverse=True)
        for before, after in pairwise([*gone, 0]):
            await ran(app, 3)
            clock.advance(seconds=60 * (before - after))
            await app.store.metrics.roll_up()
        text = await browser.text("")
        assert f'aria-current="true">{span}</a>' in text
        assert '<a class="value" href="/jobs?status=completed">0</a>' not in text
        assert 'aria-current="true">1h</a>' in await browser.text("?span=1h")


async def test_a_new_installation_is_shown_at_the_shortest_span(browser: Browser) -> None:
    assert 'aria-current="true">10m</a>' in await browser.text("")


@pytest.mark.usefixtures("always_fresh")
async def test_an_idle_queue_that_a_worker_serves_is_shown(browser: Browser, app: Penstock) -> None:
    assert '<tr id="queue-mail"' not in await browser.text("")
    app.store.workers.beat(a_beat(queues=None, declared_queues=("mail",)))
    assert '<tr id="queue-mail"' in await browser.text("")


async def test_a_queue_whose_jobs_have_ended_in_the_span_is_shown(
    browser: Browser, app: Penstock
) -> None:
    await app.enqueue_payload("mail.send", '{"to": "a"}')
    leases = await claim_all(app.store, types=("mail.send",))
    await app.store.jobs.settle(OWNER, [completed(lease) for lease in leases])
    assert '<tr id="queue-mail"' in await browser.text("?span=1h")


async def test_a_queue_that_is_paused_looks_it(browser: Browser, app: Penstock) -> None:
    await app.controls.pause(queue="mail", reason="a test")
    row = (await browser.text("")).partition('<tr id="queue-mail">')[2].partition("</tr>")[0]
    assert 'class="badge is-paused"' in row
    assert 'title="a test"' in row


async def test_of_many_types_those_that_fail_are_shown_and_the_rest_is_linked(
    browser: Browser, app: Penstock
) -> None:
    for n in range(14):
        for _ in range(2):
            await app.enqueue_payload("mail.send", '{"to": "a"}', queue=f"q{n:02}")
    await app.enqueue_payload("mail.send", '{"to": "a"}', queue="worst")
    ended = [
        buried(lease) if lease.queue == "worst" else completed(lease)
        for lease in await claim_all(app.store, types=("mail.send",))
    ]
    await app.store.jobs.settle(OWNER, ended)
    text = await browser.text("")
    assert text.count('<tr id="type-') == 13
    assert '<tr id="type-mail.send-worst">' in text
    assert 'href="/?span=10m&amp;types=all">Show all 15</a>' in text
    assert (await browser.text("?types=all")).count('<tr id="type-') == 15


async def test_every_number_of_a_queue_leads_to_its_rows(browser: Browser, app: Penstock) -> None:
    await ran(app, 3)
    await app.enqueue_payload("mail.send", '{"to": "a"}')
    await app.enqueue_payload("import", '{"file": "b"}', delay=60)
    text = await browser.text("")
    for query in (
        "queue=mail&amp;status=queued",
        "queue=mail&amp;status=failed",
        "queue=data&amp;status=pending",
    ):
        assert f'href="/jobs?{query}">1</a>' in text
        rows = await browser.text(f"jobs?{query.replace('&amp;', '&')}")
        assert rows.count('<tr id="job-') == 1


async def test_running_jobs_show_how_far_they_are(browser: Browser, app: Penstock) -> None:
    from penstock.store.contract import Report

    await app.enqueue_payload("import", '{"file": "b"}')
    [lease] = await claim_all(app.store, types=("import",))
    report = Report(id=lease.id, fence=lease.fence, progress_percent=40, progress_message="row <4>")
    await app.store.jobs.report(OWNER, [report])
    text = await browser.text("")
    assert '<progress max="100" value="40.0"' in text
    assert "row &lt;4&gt;" in text


async def test_who_belongs_to_a_tenant_sees_its_jobs_only(log_in: Any, app: Penstock) -> None:
    await app.enqueue_payload("mail.send", '{"to": "a"}', tenant="north")
    await app.enqueue_payload("import", '{"file": "b"}', tenant="south")
    browser: Browser = await log_in(Scope.OPERATE, tenant_id="north")
    text = await browser.text("jobs")
    assert "mail.send" in text
    assert "import" not in text.split("<datalist")[0] + text.split("</datalist>")[1]
    assert 'href="/workers"' not in text
    assert text.count('<tr id="job-') == 1


@pytest.mark.every_store
async def test_who_belongs_to_a_tenant_sees_its_own_figures(log_in: Any, app: Penstock) -> None:
    for tenant, count in (("north", 2), ("south", 5)):
        mail = app.types["mail.send"].options(tenant=tenant)
        await app.enqueue_many([mail.new(to=str(n)) for n in range(count)])
    leases = await claim_all(app.store, types=("mail.send",))
    await app.store.jobs.settle(OWNER, [completed(lease, '"ok"', 40) for lease in leases])
    await app.enqueue_payload("mail.send", '{"to": "a"}', tenant="north")
    await app.enqueue_payload("import", '{"file": "b"}', tenant="south")
    browser: Browser = await log_in(Scope.OPERATE, tenant_id="north")
    text = await browser.text("")
    assert '<a class="value" href="/jobs?status=completed">2</a>' in text
    assert 'of <a href="/jobs">3 jobs</a>' in text
    assert "average 40 ms, longest 40 ms" in text
    assert 'href="/jobs?queue=mail&amp;status=queued">1</a>' in text
    for others in ("import", 'href="/workers"', 'href="/queues"', "All is well", "Health"):
        assert others not in text


async def test_a_page_that_asks_for_itself_gets_the_content_alone(browser: Browser) -> None:
    again = await browser.open("", headers={"HX-Request": "true"})
    assert "<html" not in again.text
    assert '<div id="content">' in again.text
    assert 'id="pages"' in again.text


async def test_what_fires_and_what_is_promised_stand_on_the_first_page(
    browser: Browser, app: Penstock
) -> None:
    firing = Alert(
        name="queue_depth",
        rule="queue_depth",
        state=AlertState.FIRING,
        severity=Severity.CRITICAL,
        text="5,200 jobs <wait>",
        since_at=1,
        history=(Turn(at=1, state=AlertState.FIRING),),
    )
    await app.store.records.put("alert", firing.name, encode(firing).decode())
    text = await browser.text("")
    assert "5,200 jobs &lt;wait&gt;" in text
    assert '<span>Alerts</span><span class="count bad">1</span>' in text
    assert "Job completion rate" in text


@pytest.mark.usefixtures("always_fresh")
async def test_the_first_line_says_whether_all_is_well(browser: Browser, app: Penstock) -> None:
    assert 'class="health is-unhealthy"' in await browser.text("")
    app.store.workers.beat(a_beat(poll_age_ms=10))
    text = await browser.text("")
    assert 'class="health is-healthy"' in text
    assert "All is well." in text
    await app.controls.pause(queue="mail", reason="a test")
    await app.enqueue_payload("mail.send", '{"to": "a"}')
    text = await browser.text("")
    assert 'class="health is-degraded"' in text
    assert '<a href="/queues"><strong>Queues</strong></a> Paused while jobs wait: mail.' in text


async def test_a_follower_that_is_behind_stands_on_the_first_page(
    browser: Browser, app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.operate.followers.MANY_CHANGES", 0)
    await app.store.changes.follow("links.clicks", [Status.QUEUED])
    await app.enqueue_payload("mail.send", '{"to": "a"}')
    text = await browser.text("")
    assert "links.clicks (1 change to be told)" in text
    assert "penstock followers drop links.clicks" in text


async def test_of_many_queues_the_fullest_are_shown(browser: Browser, app: Penstock) -> None:
    for n in range(14):
        for _ in range(1 if n < 2 else 2):
            await app.enqueue_payload("mail.send", '{"to": "a"}', queue=f"q{n:02}")
    text = await browser.text("")
    assert text.count('<tr id="queue-') == 12
    assert "q00" not in text
    assert "And 2 more queues" in text
