"""The agent workers' pages: what they show, to whom, and what their buttons do."""

import re
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.agents import pages
from penstock.apps.agents.memory.records import Edge, Graph, MemoryFilter
from penstock.apps.agents.pages.graph import legend, narrow, wide
from penstock.server.access.identity import Scope
from penstock.testing import drain
from tests.apps.agents.furnish import TENANT, Receiver, furnish, hold_session, remember
from tests.apps.agents.serving import app, receiver  # noqa: F401
from tests.server.dashboard.conftest import Browser, browser, http, log_in, server  # noqa: F401

pytestmark = pytest.mark.thorough("postgres")

HOSTILE = "<img src=x onerror=alert(1)>"
ALL = ("memories", "memories?view=graph", "sessions", "patterns", "webhooks", "quotas", "exports")


def test_no_template_has_a_style_or_a_script_of_its_own() -> None:
    folder = Path(pages.__file__).parents[1] / "templates"
    assert len(list(folder.glob("*.html"))) >= 10
    for path in folder.glob("*.html"):
        text = path.read_text("utf-8")
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:|<script|\| safe", text), path


def test_every_class_of_a_template_has_a_rule() -> None:
    from penstock.server.dashboard import links

    rules = re.sub(r"\{[^{}]*\}", "", (links.FOLDER / "app.css").read_text())
    known = set(re.findall(r"\.([a-z][\w-]*)", rules))
    for path in (Path(pages.__file__).parents[1] / "templates").glob("*.html"):
        for words in re.findall(r'class="([^"{}]*)"', path.read_text()):
            assert set(words.split()) <= known, path


@pytest.mark.quick("postgres")
async def test_every_page_says_how_to_begin_when_there_is_nothing(browser: Browser) -> None:  # noqa: F811
    assert "app.agents.memories.add" in await browser.text("agents/memories")
    assert "app.agents.sessions.open" in await browser.text("agents/sessions")
    assert "pattern-training" in await browser.text("agents/patterns")
    assert "Nobody is told of anything yet." in await browser.text("agents/webhooks")
    assert "No tenant has used anything yet." in await browser.text("agents/quotas")
    assert "Nothing was exported yet." in await browser.text("agents/exports")


async def test_memories_are_searched_by_meaning_and_narrowed(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
) -> None:
    [turin, tea] = await remember(app, "Ada lives in Turin.", "Ada drinks tea in the morning.")
    await remember(app, "Ben plays chess on Sundays.", user="ben")
    found = await browser.text("agents/memories?text=which+city+is+her+home")
    rows = re.findall(r'<tr id="memory-(\w+)">', found)
    assert rows[0] == turin.id
    assert "cosine" in found
    narrowed = await browser.text("agents/memories?user=ben")
    assert len(re.findall(r'<tr id="memory-(\w+)">', narrowed)) == 1
    assert tea.id not in narrowed
    assert "No memory matches." in await browser.text("agents/memories?type=procedural")
    looked = await app.agents.memories.get(turin.id)
    assert looked.access_count == 0, "to look at a page is not to recall"


@pytest.mark.thorough("postgres")
async def test_a_memory_is_edited_merged_tied_and_deleted_from_its_pages(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
) -> None:
    one, other = await remember(app, "Ada lives in Turin.", "The bank of Ada is far away.")
    edit = {"memory": one.id, "action": "edit", "content": "Ada lives in Oslo.", "importance": "1"}
    told = await browser.follow(await browser.send("agents/memories", edit))
    assert "Saved: Ada lives in Oslo." in told
    tie = {"memory": one.id, "action": "link", "target": other.id, "edge_type": "caused_by"}
    told = await browser.follow(await browser.send("agents/memories", tie))
    assert "The two are tied." in told
    page = await browser.text(f"agents/memories/{one.id}")
    assert "was caused by" in page
    assert len(re.findall(r'<a class="node', page)) == 4, "two memories, drawn wide and slim"
    await browser.send("agents/memories", tie | {"action": "unlink"})
    assert "It is tied to no other memory." in await browser.text(f"agents/memories/{one.id}")
    picked = {f"pick-{one.id}": "on", f"pick-{other.id}": "on", "action": "merge"}
    told = await browser.follow(await browser.send("agents/memories", picked))
    assert "2 memories became one" in told
    current = await app.agents.memories.list(MemoryFilter(current=True))
    assert len(current) == 1
    path = f"agents/memories/{other.id}/delete"
    assert "Delete this memory?" in await browser.text(path)
    await browser.send(path, {})
    assert "It is gone" in await browser.text(path)
    wrong = await browser.send("agents/memories", {"memory": one.id, "action": "burn"})
    assert "one of: edit, delete, merge, link, unlink" in await browser.follow(wrong)


async def test_the_graph_draws_what_is_tied_and_names_its_edges(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    have = await furnish(app, receiver.url)
    text = await browser.text("agents/memories?view=graph")
    drawn = set(re.findall(r'<a class="node[^"]*" href="/agents/memories/(\w+)"', text))
    assert drawn == {*have.memories, have.merged}
    assert "was superseded by" in text
    assert "is related to" in text


async def test_what_came_first_stands_left_and_circles_are_drawn_too(app: Penstock) -> None:  # noqa: F811
    memories = await remember(
        app, "The sky is blue.", "Bread is baked at night.", "Ships sail to Genoa."
    )
    first, second, third = (each.id for each in memories)
    edges = [
        Edge(source=second, target=first, edge_type="supersedes", weight=1, created_at=1),
        Edge(source=second, target=third, edge_type="part_of", weight=1, created_at=1),
        Edge(source=third, target=second, edge_type="part_of", weight=1, created_at=1),
    ]
    picture = wide(Graph(memories, edges[:2]), second)
    places = {node.memory.id: node.x for node in picture.nodes}
    assert places[first] < places[second] < places[third]
    assert [node.is_here for node in picture.nodes] == [False, True, False]
    circle = wide(Graph(memories, edges))
    assert len({(node.x, node.y) for node in circle.nodes}) == 3
    assert narrow(Graph(memories, edges)).width <= 350
    assert legend(Graph(memories, edges)) == [
        ("in-busy", "became part of"),
        ("in-warn", "was superseded by"),
    ]


async def test_a_session_shows_its_turns_and_what_was_seen_in_it(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
) -> None:
    session = await hold_session(app, "Refund order 7")
    await drain(app)
    assert session in await browser.text("agents/sessions?status=closed")
    text = await browser.text(f"agents/sessions/{session}")
    assert len(re.findall(r'<article class="turn"', text)) == 4
    assert "is-completed" in text
    assert "Refund order 7" in text


async def test_a_pattern_is_shown_with_its_examples_and_switched_off(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    have = await furnish(app, receiver.url)
    text = await browser.text("agents/patterns")
    assert "Refunds go well with refund." in text
    assert f'href="/agents/sessions/{have.session}"' in text
    off = {"pattern": have.pattern, "action": "deactivate"}
    told = await browser.follow(await browser.send("agents/patterns", off))
    assert "The pattern is no longer used." in told
    assert not (await app.agents.learning.pattern(have.pattern)).is_active
    assert "No pattern matches." in await browser.text("agents/patterns?state=active")


async def test_a_webhook_is_added_tested_replayed_and_deleted_from_its_pages(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    form = {"url": receiver.url, "topics": "order.shipped, job.*", "max_failures": "3"}
    refused = await browser.follow(await browser.send("agents/webhooks", form))
    assert "job" in refused, "nobody would hear of jobs here"
    form["topics"] = "order.shipped"
    told = await browser.follow(await browser.send("agents/webhooks", form))
    secret = re.search(r"whsec_[\w+/=-]+", told)
    assert secret, "its secret is shown"
    assert secret[0] not in await browser.text("agents/webhooks"), "once"
    [webhook] = await app.agents.webhooks.list()
    path = f"agents/webhooks/{webhook.id}"
    told = await browser.follow(await browser.send(path, {"action": "test"}))
    assert "A test is on its way" in told
    receiver.status = 404
    await drain(app)
    text = await browser.text(path)
    assert "&lt;b&gt;taken&lt;/b&gt;" in text, "an answer is shown as text"
    assert "<b>taken" not in text
    assert "404" in text
    receiver.status = 200
    [delivery, *_] = await app.agents.webhooks.deliveries(webhook.id)
    await browser.send(path, {"action": "replay", "delivery": delivery.id})
    span = {"action": "replay_span", "span": "24h"}
    assert "1 message" in await browser.follow(await browser.send(path, span))
    told = await browser.follow(await browser.send(path, {"action": "rotate"}))
    assert "whsec_" in told
    await browser.send(path, {"action": "disable"})
    assert "was disabled by somebody" in await browser.text("agents/webhooks")
    await browser.send(path, {"action": "enable"})
    change = {"action": "change", "topics": "a.b", "owner": "ben", "max_failures": "7"}
    await browser.send(path, change)
    changed = await app.agents.webhooks.get(webhook.id)
    assert (changed.topics, changed.owner, changed.max_failures) == (("a.b",), "ben", 7)
    await browser.send(f"{path}/delete", {})
    assert "It is gone" in await browser.text(f"{path}/delete")
    assert await app.agents.webhooks.list() == []


async def test_what_is_wrong_is_on_the_overview(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    made = await app.agents.webhooks.add(receiver.url, tenant=TENANT)
    receiver.status = 410
    await app.agents.webhooks.test(made.webhook.id)
    await app.agents.quotas.set(TENANT, "storage", 1)
    await remember(app, "Ada lives in Turin.")
    await drain(app)
    await app.agents.enqueue("quota-check", {})
    await drain(app)
    text = await browser.text("")
    assert "1 webhook disabled" in text
    assert "1 quota used up" in text
    tiles = re.findall(r'class="label">([^<]+)</div>\s*<a class="value"[^>]*>([^<]+)</a>', text)
    assert ("Memories", "1") in tiles


async def test_quotas_are_bars_and_are_set_and_removed(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
) -> None:
    form = {"tenant": TENANT, "measure": "money", "most": "1,000.5", "then": "warn"}
    told = await browser.follow(await browser.send("agents/quotas", form | {"action": "set"}))
    assert "may use $1,000.50 a month" in told
    assert 'aria-label="0 % used"' in told
    removed = {"tenant": TENANT, "measure": "money", "action": "remove"}
    await browser.send("agents/quotas", removed)
    assert await app.agents.quotas.list() == []
    wrong = await browser.send("agents/quotas", form | {"most": "much", "action": "set"})
    assert "a number" in await browser.follow(wrong)


@pytest.mark.thorough("postgres")
async def test_exports_and_deletions_are_started_and_certified(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
) -> None:
    await remember(app, "Ada lives in Turin.")
    export = {"action": "export", "kind": "data", "tenant": TENANT}
    assert "The export has begun" in await browser.follow(
        await browser.send("agents/exports", export)
    )
    await drain(app)
    text = await browser.text("agents/exports")
    [address] = re.findall(r'href="/(api/agents/exports/\w+/file)"', text)
    assert (await browser.open(address)).status_code == 200
    wrong = {"tenant": TENANT, "sure": "south"}
    assert "again" in await browser.follow(await browser.send("agents/erase", wrong))
    await browser.send("agents/erase", wrong | {"sure": TENANT})
    await drain(app)
    text = await browser.text("agents/exports")
    assert "Certificate" in text
    assert "A tenant" in text
    assert await app.agents.memories.list() == []


async def test_hostile_text_is_shown_and_does_nothing(
    app: Penstock,  # noqa: F811
    browser: Browser,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    receiver.answer = HOSTILE
    have = await furnish(app, receiver.url, HOSTILE)
    one = (
        f"memories/{have.merged}",
        f"memories/{have.merged}/delete",
        f"sessions/{have.session}",
        f"webhooks/{have.webhook}",
    )
    for path in (*ALL, *one):
        assert "<img" not in await browser.text(f"agents/{path}"), path


async def test_a_tenant_sees_its_own_and_a_reader_changes_nothing(
    app: Penstock,  # noqa: F811
    log_in: Any,  # noqa: F811
    receiver: Receiver,  # noqa: F811
) -> None:
    have = await furnish(app, receiver.url, "theirs")
    bound: Browser = await log_in(Scope.READ, tenant_id="south")
    for path in ALL:
        assert "theirs" not in await bound.text(f"agents/{path}"), path
        assert (await bound.open(f"agents/{path}?tenant=north")).status_code in (200, 403), path
    for path in (
        f"memories/{have.merged}",
        f"sessions/{have.session}",
        f"webhooks/{have.webhook}",
    ):
        assert (await bound.open(f"agents/{path}")).status_code == 404, path
    assert (await bound.open("agents/erase")).status_code == 403
    change = {"memory": have.merged, "action": "delete"}
    assert (await bound.send("agents/memories", change)).status_code == 403
    forms = re.findall(r'method="post" action="([^"]*)"', await bound.text("agents/webhooks"))
    assert forms == ["/logout"]
