import re

import pytest

from penstock import Penstock
from penstock.model.controls import Breaker, LimitKind
from penstock.server.app import create_server
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, claim_all, completed
from tests.server.dashboard.conftest import Browser, a_browser
from tests.server.dashboard.furnish import a_beat


async def actions(app: Penstock) -> list[str]:
    return [entry.action for entry in await app.store.audit.page(0, 1_000)]


async def test_every_number_links_to_the_jobs_behind_it(browser: Browser, app: Penstock) -> None:
    for n in range(3):
        await app.enqueue_payload("mail.send", f'{{"to": "{n}"}}')
    await app.enqueue_payload("import", '{"file": "b"}', delay=60)
    text = await browser.text("queues")
    assert 'href="/jobs?queue=mail&amp;status=queued">3</a>' in text
    assert 'href="/jobs?queue=data&amp;status=pending">1</a>' in text
    assert "no limit" in text
    assert 'class="is-queued"' in text


async def test_a_queue_is_paused_with_a_reason_and_resumed(browser: Browser, app: Penstock) -> None:
    about = {"scope": "queue", "name": "mail"}
    sent = await browser.send("queues/pause", {**about, "reason": "deploy"})
    text = await browser.follow(sent)
    assert "The queue mail is paused" in text
    assert "by local: deploy" in text
    [pause] = await app.store.controls.pauses()
    assert (pause.name, pause.reason, pause.paused_by) == ("mail", "deploy", "local")
    text = await browser.follow(await browser.send("queues/resume", about))
    assert "is resumed" in text
    assert await app.store.controls.pauses() == []
    assert await actions(app) == ["pause", "resume"]


async def test_how_fast_a_new_queue_empties_is_measured_since_it_began() -> None:
    clock = FakeClock()
    app = Penstock("sqlite:///:memory:", clock=clock)
    app.job(name="mail.send", queue="mail")(lambda to: to)
    async with app, a_browser(create_server(app, trusts_callers=True)) as browser:
        for _ in range(3):
            await app.enqueue_many([app.types["mail.send"].new(to=str(n)) for n in range(12)])
            leases = await claim_all(app.store, types=("mail.send",))
            await app.store.jobs.settle(OWNER, [completed(lease) for lease in leases])
            clock.advance(seconds=60)
        app.store.workers.beat(a_beat(queues=None, declared_queues=("mail",)))
        text = await browser.text("queues")
        assert 'href="/jobs?queue=mail&amp;status=completed">12</a>' in text


@pytest.mark.every_store
async def test_an_idle_queue_can_be_paused_from_its_row(browser: Browser, app: Penstock) -> None:
    app.store.workers.beat(a_beat(queues=None, declared_queues=("mail",)))
    text = await browser.text("queues")
    [row] = re.findall(r'<tr id="queue-mail">.*?</tr>', text, re.S)
    assert 'action="/queues/pause"' in row
    assert 'name="scope" value="queue"><input type="hidden" name="name" value="mail">' in row


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "job", "name": "x"},
        {"scope": "queue", "name": ""},
        {"scope": "queue", "name": "*"},
        {"scope": "queue", "name": "mail", "reason": "x" * 1_001},
    ],
)
async def test_what_cannot_be_paused_is_refused_in_words(
    fields: dict[str, str], browser: Browser, app: Penstock
) -> None:
    assert "notice bad" in await browser.follow(await browser.send("queues/pause", fields))
    assert await app.store.controls.pauses() == []


async def test_types_and_tenants_are_held_back_too(browser: Browser, app: Penstock) -> None:
    for scope, name in (("type", "mail.send"), ("tenant", "north")):
        await browser.send("queues/pause", {"scope": scope, "name": name})
    job = await app.enqueue_payload("import", '{"file": "b"}')
    await app.controls.pause(job=job.id)
    text = await browser.text("queues")
    assert 'href="/jobs?type=mail.send">mail.send</a>' in text
    assert 'href="/jobs?tenant=north">north</a>' in text
    assert "1 single job</a> paused" in text


async def test_limits_are_set_and_dropped(browser: Browser, app: Penstock) -> None:
    about = {"scope": "queue", "name": "mail"}
    bounds = {**about, "concurrency": "3", "rate": "60/min", "depth": "10"}
    text = await browser.follow(await browser.send("queues/limits", bounds))
    assert "The limit of queue mail is set." in text
    assert "60 <span" in text
    assert {s.limit.kind: s.limit.capacity for s in await app.store.controls.limits()} == {
        LimitKind.CONCURRENCY: 3,
        LimitKind.RATE: 60,
        LimitKind.DEPTH: 10,
    }
    await browser.send("queues/limits/remove", {**about, "kind": "rate"})
    again = await browser.send("queues/limits/remove", {**about, "kind": "rate"})
    assert "There is no limit of rate on queue" in await browser.follow(again)
    assert len(await app.store.controls.limits()) == 2


@pytest.mark.parametrize(
    "bounds", [{}, {"concurrency": "0"}, {"concurrency": "few"}, {"rate": "fast"}, {"depth": "-1"}]
)
async def test_a_limit_that_makes_no_sense_is_refused_in_words(
    bounds: dict[str, str], browser: Browser, app: Penstock
) -> None:
    sent = await browser.send("queues/limits", {"scope": "queue", "name": "mail", **bounds})
    assert "notice bad" in await browser.follow(sent)
    assert await app.store.controls.limits() == []


@pytest.mark.usefixtures("always_fresh")
async def test_a_queue_near_its_limit_changes_colour(browser: Browser, app: Penstock) -> None:
    await app.controls.set_limit(queue="mail", depth=4)
    for colour, jobs, part in (("warn", 1, "25 %"), ("warn", 1, "50 %"), ("bad", 2, "100 %")):
        for _ in range(jobs):
            await app.enqueue_payload("mail.send", '{"to": "a"}')
        badge = f'<span class="badge in-{colour}"><span>{part} of 4</span></span>'
        assert badge in await browser.text("queues")


async def test_a_breaker_is_shown_and_reset(browser: Browser, app: Penstock) -> None:
    await app.store.controls.define_breakers([Breaker(name="smtp", types=("mail.send",))])
    text = await browser.text("queues")
    assert re.search(r'id="breaker-smtp".*?closed', text, re.S)
    sent = await browser.send("queues/breakers/reset", {"name": "smtp"})
    assert "The breaker smtp is closed." in await browser.follow(sent)
    sent = await browser.send("queues/breakers/reset", {"name": "nope"})
    assert "There is no breaker" in await browser.follow(sent)
    assert await actions(app) == ["breaker.reset", "breaker.reset", "breaker.reset.refused"]


async def test_a_thousand_queues_come_in_pages(browser: Browser, app: Penstock) -> None:
    jobs = [app.types["mail.send"].options(queue=f"q{n}").new(to="a") for n in range(1_010)]
    await app.enqueue_many(jobs)
    seen = await browser.walk("queues", r'<tr id="queue-(q\d+)"')
    assert seen == sorted(f"q{n}" for n in range(1_010))
