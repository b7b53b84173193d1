import re
from collections.abc import AsyncIterator

import pytest

from penstock import Penstock, chain
from penstock.model.failure import Failure
from penstock.model.job import Lease
from penstock.model.outcome import Completed, Failed
from penstock.model.retry import ErrorClass
from penstock.store.contract import Report
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, claim_all, completed
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import a_beat, bury


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def app(clock: FakeClock) -> AsyncIterator[Penstock]:
    made = Penstock("sqlite:///:memory:", clock=clock)

    @made.job(name="mail.send", queue="mail", max_retries=3)
    async def send(to: str) -> str:
        return to

    async with made:
        yield made


async def started(app: Penstock, **options: str) -> Lease:
    """A job that runs."""
    await app.enqueue_payload("mail.send", '{"to": "a"}', **options)
    return await again(app)


async def again(app: Penstock) -> Lease:
    [lease] = await claim_all(app.store, types=("mail.send",))
    return lease


async def lose(app: Penstock, clock: FakeClock) -> None:
    """Its worker is killed: the lease lapses, and the job is given to others."""
    clock.advance(seconds=61)
    assert len(await app.store.upkeep.rescue()) == 1


def facts(text: str) -> dict[str, str]:
    """The words beside each fact of a page."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text)
    return {name: " ".join(re.sub(r"<[^>]*>", "", value).split()) for name, value in found}


def executions(text: str) -> list[str]:
    return re.findall(
        r'<tr id="run-\d+">\s*<th scope="row" data-label="Execution">(.*?)</th>', text
    )


async def test_a_dead_job_has_ended_and_was_not_completed(browser: Browser, app: Penstock) -> None:
    [job_id] = await bury(app)
    told = facts(await browser.text(f"jobs/{job_id}"))
    assert "Ended" in told
    assert "Completed" not in told


async def test_a_completed_job_says_when(browser: Browser, app: Penstock) -> None:
    lease = await started(app)
    await app.store.jobs.settle(OWNER, [completed(lease)])
    told = facts(await browser.text(f"jobs/{lease.id}"))
    assert "Completed" in told
    assert "Ended" not in told


async def test_the_attempt_that_runs_is_counted(browser: Browser, app: Penstock) -> None:
    lease = await started(app)
    assert facts(await browser.text(f"jobs/{lease.id}"))["Attempts"] == "1 of 4, running now"
    assert '1 <span class="quiet">of 4</span>' in await browser.text("jobs")


async def test_executions_and_their_log_are_numbered_in_order_whatever_was_lost(
    browser: Browser, app: Penstock, clock: FakeClock
) -> None:
    first = await started(app)
    await lose(app, clock)
    second = await again(app)
    assert second.fence > first.fence + 1
    said = Report(id=second.id, fence=second.fence, logs=[(clock.now(), "info", "hi")])
    await app.store.jobs.report(OWNER, [said])
    text = await browser.text(f"jobs/{first.id}")
    assert executions(text) == ["2", "1"]
    assert re.search(r'<td class="quiet"[^>]*>2</td><td[^>]*>hi</td>', text)


async def test_an_execution_whose_worker_died_is_lost_and_not_called_poison(
    browser: Browser, app: Penstock, clock: FakeClock
) -> None:
    lease = await started(app)
    await lose(app, clock)
    text = await browser.text(f"jobs/{lease.id}")
    assert "<span>lost</span>" in text
    assert "The worker stopped renewing its lease" in text
    assert "poison" not in text


async def test_a_job_that_is_tried_again_shows_the_traceback_of_its_last_failure(
    browser: Browser, app: Penstock, clock: FakeClock
) -> None:
    lease = await started(app)
    stack = 'Traceback:\n  File "shop.py", line 7, in send\nKeyError: <customer>\n'
    failure = Failure(ErrorClass.UNKNOWN, "KeyError", "KeyError: 'customer'", stack, "x")
    settled = Failed(**_facts(lease), failure=failure, retry_in_ms=10)
    await app.store.jobs.settle(OWNER, [settled])
    for _ in ("it waits for its retry", "it runs again"):
        text = await browser.text(f"jobs/{lease.id}")
        error = text.partition('id="error"')[2].partition("</section>")[0]
        assert "KeyError: &#39;customer&#39;" in error
        assert "Traceback of execution 1" in error
        assert "line 7, in send\nKeyError: &lt;customer&gt;" in error
        clock.advance(seconds=1)
        await claim_all(app.store, types=("mail.send",))


async def test_what_no_execution_measured_has_no_column(browser: Browser, app: Penstock) -> None:
    lease = await started(app)
    assert not {"CPU", "Memory"} & set(heads(await browser.text(f"jobs/{lease.id}")))
    measured = Completed(**_facts(lease), result="1", cpu_ms=40, memory_kb=61_440)
    await app.store.jobs.settle(OWNER, [measured])
    text = await browser.text(f"jobs/{lease.id}")
    assert {"CPU", "Memory"} <= set(heads(text))
    assert "60 MB" in text


async def test_workers_are_called_by_their_names(browser: Browser, app: Penstock) -> None:
    app.store.workers.beat(a_beat(name="mailer"))
    lease = await started(app)
    text = await browser.text(f"jobs/{lease.id}")
    assert f'title="{OWNER}">mailer</a>' in text
    assert facts(text)["Worker"] == "mailer"


async def test_a_worker_that_is_gone_is_called_by_its_host(browser: Browser, app: Penstock) -> None:
    lease = await started(app)
    await app.store.jobs.settle(OWNER, [completed(lease)])
    host, _, number = OWNER.partition(":")
    assert f'title="{OWNER}">{host} …{number[-6:]}</span>' in await browser.text(f"jobs/{lease.id}")


async def test_a_finished_job_is_run_again_as_a_new_one_and_both_are_linked(
    browser: Browser, app: Penstock
) -> None:
    lease = await started(app)
    page = await browser.text(f"jobs/{lease.id}")
    assert "Run again" not in page
    await app.store.jobs.settle(OWNER, [completed(lease)])
    assert f'action="/jobs/{lease.id}/run-again"' in await browser.text(f"jobs/{lease.id}")
    text = await browser.follow(await browser.send(f"jobs/{lease.id}/run-again"))
    [new, old] = await app.find()
    assert (new.payload, old.id) == (old.payload, lease.id)
    assert facts(text)["Run again from"] == old.id
    assert "Parent" not in facts(text)
    text = await browser.text(f"jobs/{old.id}")
    assert facts(text)["Run again as"] == new.id
    assert "Children" not in text


async def test_a_step_of_a_flow_is_run_again_after_a_word_about_the_steps_after_it(
    browser: Browser, app: Penstock
) -> None:
    send = app.types["mail.send"]
    flow = await app.enqueue(chain(send.new(to="a"), send.new(to="b")))
    for _ in flow.ids:
        leases = await claim_all(app.store, types=("mail.send",))
        await app.store.jobs.settle(OWNER, [completed(lease) for lease in leases])
    first, last = [await browser.text(f"jobs/{job_id}") for job_id in flow.ids]
    assert "The jobs that came after it in its flow are not repeated." in first
    assert 'popovertarget="run-again"' in first
    assert "are not repeated" not in last
    assert f'action="/jobs/{flow.ids[1]}/run-again"' in last


async def test_a_job_that_has_not_finished_is_not_run_again(
    browser: Browser, app: Penstock
) -> None:
    lease = await started(app)
    sent = await browser.send(f"jobs/{lease.id}/run-again")
    assert "notice bad" in await browser.follow(sent)
    assert len(await app.find()) == 1


def heads(text: str) -> list[str]:
    table = text.partition('id="executions"')[2].partition("</thead>")[0]
    return re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', table)


def _facts(lease: Lease) -> dict[str, object]:
    return {
        "id": lease.id,
        "fence": lease.fence,
        "type": lease.type,
        "queue": lease.queue,
        "started_at": lease.started_at,
        "duration_ms": 5,
    }
