import re
from itertools import pairwise
from typing import Any

import pytest
from fastapi import FastAPI
from msgspec.json import encode

from penstock import Penstock
from penstock.model.failure import Failure
from penstock.model.ids import new_id
from penstock.model.job import OPTIONS, NewJob
from penstock.model.outcome import Buried
from penstock.model.retry import ErrorClass
from penstock.model.states import Status
from penstock.operate.jobs import family_of
from penstock.server.access.identity import Scope
from penstock.server.api.filters import JobQuery
from penstock.server.dashboard.graph import HIGH, SLIM, TALL, WIDE, Graph, drawing, graph_of
from penstock.server.dashboard.request import asked
from penstock.store.contract import Report
from proof.conformance.build import OWNER, claim_all, completed, enqueue_after
from tests.server.dashboard.conftest import Browser
from tests.support.options import KEPT, SAMPLES, TEXTS, columns, typed

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"


async def audited(app: Penstock) -> list[tuple[str, str]]:
    return [(entry.action, entry.subject) for entry in await app.store.audit.page(0, 1_000)]


async def mails(app: Penstock, count: int, **options: Any) -> list[str]:
    made = [app.types["mail.send"].options(**options).new(to=str(n)) for n in range(count)]
    return [handle.id for handle in await app.enqueue_many(made)]


async def test_filters_stand_in_the_url(browser: Browser, app: Penstock) -> None:
    [first, *_] = await mails(app, 2, tags=("vip",))
    await app.enqueue_payload("import", '{"file": "b.csv"}', category="night")
    for query, rows in {
        "": 3,
        "type=mail.send": 2,
        "type=mail.send&queue=&text=": 2,
        "queue=data": 1,
        "category=night": 1,
        "tag=vip": 2,
        "status=queued&status=failed": 3,
        "status=completed": 0,
        "payload=to%3D%221%22": 1,
        f"text={first}": 1,
        "since=2020-01-01T10:00": 3,
        "until=2020-01-01T10:00": 0,
        "unknown=1": 3,
    }.items():
        text = await browser.text(f"jobs?{query}")
        assert text.count('<tr id="job-') == rows, query


async def test_a_filter_that_cannot_be_read_is_told_at_its_field(browser: Browser) -> None:
    text = await browser.text("jobs?parent=nonsense&since=yesterday&text=x")
    for name in ("parent", "since", "text"):
        assert f'aria-describedby="wrong-{name}"' in text
    assert "notice bad" in await browser.text("jobs?status=nonsense")


async def test_pages_follow_one_another(browser: Browser, app: Penstock) -> None:
    ids = await mails(app, 120)
    seen: list[str] = []
    path = "jobs?type=mail.send"
    while path:
        text = await browser.text(path)
        seen += re.findall(r'<tr id="job-(\w+)"', text)
        older = re.search(r'rel="next" href="/([^"]+)"', text)
        path = older[1].replace("&amp;", "&") if older else ""
    assert seen == sorted(ids, reverse=True)


async def test_tabs_count_what_waits_and_runs(browser: Browser, app: Penstock) -> None:
    await mails(app, 3)
    await app.enqueue_payload("import", "{}".replace("{}", '{"file": "b"}'), delay=60)
    text = await browser.text("jobs?queue=mail")
    assert re.search(r'href="/jobs\?status=queued&amp;queue=mail".*?<b>3</b>', text)
    assert not re.search(r'href="/jobs\?status=pending&amp;queue=mail"[^\n]*<b>', text)


async def test_a_form_enqueues_and_is_on_record(browser: Browser, app: Penstock) -> None:
    form = await browser.text("jobs/new?type=mail.send")
    assert "&#34;copies&#34;: 1" in form
    fields = {"type": "mail.send", "payload": '{"to": "a"}', "priority": "2", "tags": "x, y"}
    text = await browser.follow(await browser.send("jobs/new", fields))
    assert "The job is enqueued." in text
    [job] = await app.find()
    assert (job.type, job.priority, job.tags, job.created_by) == (
        "mail.send",
        2,
        ("x", "y"),
        "local",
    )
    assert await audited(app) == [("job.enqueue", f"job:{job.id}")]


async def test_a_form_has_a_field_for_every_option(browser: Browser, app: Penstock) -> None:
    said = {name: SAMPLES[name] for name in SAMPLES if name != "created_by"}
    form = await browser.text("jobs/new?type=mail.send")
    for name in [*said, "after"]:
        assert f'name="{name}"' in form, name
    assert "created_by" not in form
    texts = {name: typed(value) for name, value in said.items()} | {"at": "2999-01-01T00:00"}
    fields = {"type": "mail.send", "payload": '{"to": "a"}', **texts}
    assert "The job is enqueued." in await browser.follow(await browser.send("jobs/new", fields))
    [job] = await app.find()
    names = KEPT.keys() - {"created_by", "key_scope"}
    assert columns(job, names) == {name: OPTIONS[name].stored(KEPT[name]) for name in names}
    after = {"type": "mail.send", "payload": '{"to": "a"}', "after": job.id}
    await browser.follow(await browser.send("jobs/new", after))
    assert [job.waiting_on for job in await app.find()] == [1, 0]


@pytest.mark.parametrize(
    ("field", "text", "part"),
    [
        ("at", "noon", "a time such as"),
        ("metadata", "{", "not JSON"),
        ("metadata", "[]", "an object"),
        ("backoff", "20", "a multiplier from 1 to 10"),
        ("key_scope", "ever", "Invalid enum value"),
        ("order_key", "x" * 300, "a text of 1 to 255 characters"),
        ("after", "nobody", "is no id of a job"),
    ],
)
async def test_what_is_wrong_stands_at_its_field_and_the_options_are_open(
    browser: Browser, field: str, text: str, part: str
) -> None:
    fields = {"type": "mail.send", "payload": '{"to": "a"}', field: text}
    answer = await browser.send("jobs/new", fields)
    assert answer.status_code == 422
    assert re.search(rf'id="wrong-{field}">[^<]*{part}', answer.text)
    assert '<details id="more-options" open>' in answer.text


async def test_a_form_that_is_sent_twice_enqueues_once(browser: Browser, app: Penstock) -> None:
    form = await browser.text("jobs/new?type=mail.send")
    made = re.search(r'name="id" value="([^"]+)"', form)
    assert made is not None
    fields = {"type": "mail.send", "payload": '{"to": "a"}', "id": made[1]}
    answers = [await browser.follow(await browser.send("jobs/new", fields)) for _ in range(2)]
    assert "The job is enqueued." in answers[0]
    assert "nothing was enqueued" in answers[1]
    assert [job.id for job in await app.find()] == [made[1]]
    assert f'value="{made[1]}"' not in await browser.text("jobs/new?type=mail.send")


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"payload": "{"}, "payload", "not JSON"),
        ({"payload": "[]"}, "payload", "object"),
        ({"payload": '{"to": 7}'}, "payload", "expected str"),
        ({"payload": "{}"}, "payload", "got nothing"),
        ({"type": "nope", "payload": "{}"}, "type", "nope"),
        ({"payload": '{"to": "a"}', "priority": "11"}, "priority", "10"),
        ({"payload": "[" * 20_000}, "payload", "not JSON"),
        ({"payload": '{"to": "a"}', "priority": "high"}, "priority", "a whole number"),
        ({"payload": '{"to": "a"}', "delay": "soon"}, "delay", "a number"),
        ({"payload": '{"to": "a"}', "delay": "inf"}, "delay", "a number"),
        ({"payload": '{"to": "a"}', "delay": "nan"}, "delay", "a number"),
        ({"payload": '{"to": "a"}', "queue": "x" * 200}, "queue", "128"),
    ],
)
async def test_what_is_wrong_stands_at_its_field(
    fields: dict[str, str], field: str, why: str, browser: Browser, app: Penstock
) -> None:
    answer = await browser.send("jobs/new", {"type": "mail.send", **fields})
    assert answer.status_code == 422
    found = re.search(rf'id="wrong-{field}">([^<]*)<', answer.text)
    assert found is not None, answer.text
    assert why in found[1]
    assert await app.find() == []


async def test_each_action_is_offered_where_it_can_be_taken(
    browser: Browser, app: Penstock
) -> None:
    [job_id] = await mails(app, 1)
    for action, status in (
        ("pause", Status.PAUSED),
        ("resume", Status.QUEUED),
        ("cancel", Status.CANCELLED),
        ("requeue", Status.QUEUED),
    ):
        assert f'action="/jobs/{job_id}/{action}"' in await browser.text(f"jobs/{job_id}")
        await browser.follow(await browser.send(f"jobs/{job_id}/{action}"))
        found = (await app.get(job_id)).status
        assert found in (status, Status.PENDING) if status is Status.QUEUED else found is status
    assert [action for action, _ in await audited(app)] == [
        "job.pause",
        "job.resume",
        "job.cancel",
        "job.requeue",
    ]
    assert (await browser.send(f"jobs/{job_id}/explode")).status_code == 404


async def test_who_may_only_read_gets_no_buttons(log_in: Any, app: Penstock) -> None:
    [job_id] = await mails(app, 1)
    browser: Browser = await log_in(Scope.READ)
    assert "/cancel" not in await browser.text(f"jobs/{job_id}")
    assert 'name="action"' not in await browser.text("jobs")
    assert (await browser.send(f"jobs/{job_id}/cancel")).status_code == 403
    assert (await browser.open("jobs/new")).status_code == 403


async def test_a_job_of_another_tenant_is_not_there(log_in: Any, app: Penstock) -> None:
    [other] = await mails(app, 1, tenant="south")
    [own] = await mails(app, 1, tenant="north")
    browser: Browser = await log_in(Scope.OPERATE, Scope.ENQUEUE, tenant_id="north")
    assert (await browser.open(f"jobs/{other}")).status_code == 404
    sent = await browser.send("jobs/bulk", [("action", "cancel"), ("id", other), ("sure", "yes")])
    assert sent.status_code == 303
    await browser.send("jobs/bulk", {"action": "cancel", "whom": "all", "sure": "yes"})
    assert (await app.get(other)).status is Status.QUEUED
    assert (await app.get(own)).status is Status.CANCELLED
    await browser.send("jobs/new", {"type": "mail.send", "payload": '{"to": "a"}'})
    assert (await app.find())[0].tenant_id == "north"


async def test_a_bulk_action_says_first_how_many_it_is_about(
    browser: Browser, app: Penstock
) -> None:
    ids = await mails(app, 5)
    await app.cancel(ids[0])
    picked = [("id", job_id) for job_id in ids[:3]]
    asked_first = await browser.send("jobs/bulk", [("action", "cancel"), *picked])
    assert "Cancel 2 jobs?" in asked_first.text
    assert "1 of the selected jobs cannot be cancelled" in asked_first.text
    assert len(await app.find(status="queued")) == 4
    sure = await browser.send("jobs/bulk", [("action", "cancel"), ("sure", "yes"), *picked[1:]])
    assert "2 jobs cancelled." in await browser.follow(sure)
    assert len(await app.find(status="queued")) == 2


async def test_a_bulk_action_takes_all_that_match_and_nothing_made_since(
    browser: Browser, app: Penstock
) -> None:
    await mails(app, 70)
    await app.enqueue_payload("import", '{"file": "b"}')
    form = {"action": "pause", "whom": "all", "queue": "mail"}
    asked_first = await browser.send("jobs/bulk", form)
    assert "Pause 70 jobs?" in asked_first.text
    assert await app.find(status="paused") == []
    hidden = re.findall(r'type="hidden" name="(?!csrf)(\w+)" value="([^"]*)"', asked_first.text)
    assert "until" in dict(hidden)
    assert "70 jobs paused." in await browser.follow(await browser.send("jobs/bulk", hidden))
    assert len(await app.find(status="paused", limit=100)) == 70
    [entry] = [entry for entry in await audited(app) if entry[0].startswith("jobs.")]
    assert entry[0] == "jobs.pause"


async def test_nothing_selected_is_said(browser: Browser) -> None:
    answer = await browser.send("jobs/bulk", {"action": "cancel", "whom": "picked", "id": "'"})
    assert "Select the jobs first." in await browser.follow(answer)


async def test_a_job_page_tells_everything(browser: Browser, app: Penstock) -> None:
    parent = await app.enqueue_payload("import", '{"file": "b"}', key="only-one")
    child = await enqueue_after(app.store, parent.id, type="mail.send", parent_job_id=parent.id)
    [lease] = await claim_all(app.store, types=("import",))
    report = Report(
        id=lease.id,
        fence=lease.fence,
        progress_percent=50,
        progress_message="half",
        progress='{"phase": "half", "percent": 50, "batch": 2, "total": [7, 9]}',
        logs=[(1, "info", "began")],
    )
    await app.store.jobs.report(OWNER, [report])
    running = await browser.text(f"jobs/{parent.id}")
    for words in (
        "50 %",
        "half",
        "batch 2, total [7, 9]",
        "began",
        "only-one",
        "running since",
        f"/jobs/{child}",
        "UTC",
    ):
        assert words in running
    await app.store.jobs.settle(OWNER, [completed(lease, '{"rows": 3}', 40)])
    text = await browser.text(f"jobs/{parent.id}")
    assert '&#34;rows&#34;</span>: <span class="number">3</span>' in text
    assert 'data-label="Took">40 ms</td>' in text
    assert 'class="node is-completed here"' in text
    waiting = await browser.text(f"jobs/{child}")
    assert "Its" in waiting or "It" in waiting


async def test_hostile_text_is_text_wherever_it_stands(browser: Browser, app: Penstock) -> None:
    job = NewJob(
        id=new_id(),
        type=HOSTILE,
        payload='{"a": "</pre><script>alert(1)</script>"}',
        queue=HOSTILE,
        category=HOSTILE,
        key=HOSTILE,
        tenant_id=HOSTILE,
        workspace_id=HOSTILE,
        created_by=HOSTILE,
        limit_key=HOSTILE,
        order_key=HOSTILE,
        tags=(HOSTILE,),
        metadata='{"m": "<script>alert(1)</script>"}',
    )
    await app.store.jobs.enqueue([job])
    child = await enqueue_after(app.store, job.id, type=HOSTILE, tenant_id=HOSTILE)
    [lease] = await claim_all(app.store, types=(HOSTILE,))
    said = Report(
        id=lease.id,
        fence=lease.fence,
        progress_percent=10,
        progress_message=HOSTILE,
        progress=encode({HOSTILE: HOSTILE}).decode(),
        checkpoint='"<script>alert(1)</script>"',
        logs=[(1, HOSTILE, HOSTILE)],
    )
    await app.store.jobs.report(OWNER, [said])
    pages = ["", "jobs", f"jobs/{job.id}", f"jobs/{child}", "jobs?text=%3Cimg%20src"]
    before = [await browser.text(path) for path in pages]
    failure = Failure(ErrorClass.UNKNOWN, HOSTILE, HOSTILE, f"</pre>{HOSTILE}", HOSTILE)
    facts: dict[str, Any] = {
        "id": lease.id,
        "fence": lease.fence,
        "type": HOSTILE,
        "queue": HOSTILE,
    }
    await app.store.jobs.settle(OWNER, [Buried(**facts, started_at=1, failure=failure)])
    await app.cancel(child, HOSTILE) if not (await app.get(child)).status.terminal else None
    sent = await browser.send("jobs/new", {"type": HOSTILE, "payload": HOSTILE, "key": HOSTILE})
    bulk = await browser.send("jobs/bulk", {"action": "requeue", "id": job.id})
    for text in (*before, *[await browser.text(path) for path in pages], sent.text, bulk.text):
        assert "<img src=x" not in text
        assert "<script>" not in text
        assert "49" not in re.sub(r"\d{2,}|[0-9A-Z]{26}", "", text)
    assert "&lt;img src=x" in before[2]


def test_what_is_empty_or_unknown_in_a_url_says_nothing() -> None:
    found = asked(
        JobQuery, [("status", "failed"), ("status", "queued"), ("type", " "), ("utm", "x")]
    )
    assert found.given == {"status": ["failed", "queued"]}
    assert not found.narrowed
    assert asked(JobQuery, [("limit", "100000")]).query is None


async def graph(app: Penstock, job_id: str) -> Graph:
    return graph_of(await family_of(app.store, await app.get(job_id)))


async def test_a_flow_is_drawn_from_left_to_right_without_overlaps(app: Penstock) -> None:
    first = (await app.enqueue_payload("import", '{"file": "b"}')).id
    middle = [await enqueue_after(app.store, first, type="mail.send") for _ in range(4)]
    last = await enqueue_after(app.store, *middle, first, type="import")
    drawn = await graph(app, middle[0])
    place = {node.id: (node.x, node.y) for node in drawn.nodes}
    assert place[first][0] < place[middle[0]][0] < place[last][0]
    assert len({place[job_id][0] for job_id in middle}) == 1
    assert len(drawn.arrows) == 9
    boxes = list(place.values())
    for n, (x, y) in enumerate(boxes):
        assert 0 <= x <= drawn.width - WIDE
        assert 0 <= y <= drawn.height - HIGH
        assert all(abs(x - a) >= WIDE or abs(y - b) >= HIGH for a, b in boxes[n + 1 :])


async def test_of_many_jobs_above_one_another_each_takes_one_line(app: Penstock) -> None:
    first = (await app.enqueue_payload("import", '{"file": "b"}')).id
    for _ in range(TALL):
        await enqueue_after(app.store, first, type="mail.send")
    assert not (await graph(app, first)).slim
    await enqueue_after(app.store, first, type="mail.send")
    drawn = await graph(app, first)
    assert drawn.slim
    heights = sorted(node.y for node in drawn.nodes if node.id != first)
    assert all(b - a > SLIM for a, b in pairwise(heights))
    assert drawing(drawn, "/jobs").count('class="quiet end"') == TALL + 2


async def test_a_family_of_many_is_cut_at_the_nearest(app: Penstock, browser: Browser) -> None:
    first = (await app.enqueue_payload("import", '{"file": "b"}')).id
    for _ in range(70):
        await enqueue_after(app.store, first, type="mail.send")
    text = await browser.text(f"jobs/{first}")
    assert "only the nearest jobs" in text
    assert text.count('class="node ') == 60


async def test_a_tenants_flow_shows_none_of_anothers_jobs(
    log_in: Any, app: Penstock, server: FastAPI
) -> None:
    first = (await app.enqueue_payload("import", '{"file": "b"}', tenant="north")).id
    other = await enqueue_after(app.store, first, type="mail.send", tenant_id="south")
    own = await enqueue_after(app.store, first, type="mail.send", tenant_id="north")
    browser: Browser = await log_in(Scope.READ, tenant_id="north")
    text = await browser.text(f"jobs/{first}")
    assert own in text
    assert other not in text


async def test_jobs_are_found_by_who_enqueued_them_and_for_which_workspace(
    browser: Browser, app: Penstock
) -> None:
    send = app.find_type("mail.send")
    mine = await send.options(created_by="user:ann", workspace="north").enqueue(to="a")
    other = await send.options(created_by="user:bob", workspace="south").enqueue(to="b")
    for where in ("created_by=user%3Aann", "workspace=north"):
        text = await browser.text(f"jobs?{where}")
        assert (mine.id in text, other.id in text) == (True, False)
        assert '<details id="more-filters" open>' in text


async def test_a_page_shows_every_text_that_a_job_has(browser: Browser, app: Penstock) -> None:
    [job_id] = await mails(app, 1, **TEXTS)
    text = await browser.text(f"jobs/{job_id}")
    assert [name for name, value in TEXTS.items() if value not in text] == []
