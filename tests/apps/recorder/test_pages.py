"""The recorder's pages: what they show, to whom, and what their buttons do."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import pages
from penstock.apps.recorder.captured import Captured, Message, Redaction
from penstock.apps.recorder.demo import BUTTONS, REVIEW
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.pages import DAY_MS, HOUR_MS, _active
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.writing import write
from penstock.server.access.identity import Scope
from tests.apps.recorder.sessions import RECORDER, learn, record
from tests.server.dashboard.conftest import Browser, browser, http, log_in, server  # noqa: F401
from tests.support.places import Place

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    async with Penstock(place.url, extensions=["events", RECORDER]) as made:
        yield made


def test_no_template_has_a_style_or_a_script_of_its_own() -> None:
    for path in (Path(pages.__file__).parent / "templates").glob("*.html"):
        text = path.read_text("utf-8")
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:|<script|\| safe", text), path


async def test_sessions_are_listed_with_what_they_cost(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    first, second = await record(app), await record(app, BUTTONS, "s2")
    text = await browser.text("recorder")
    assert "<title>Sessions · Penstock</title>" in text
    assert set(re.findall(r'<tr id="session-(\w+)">', text)) == {first, second}
    assert "The payment webhook retries for ever" in text
    assert "Claude Code" in text
    assert "Cursor" in text
    only = await browser.text("recorder?platform=cursor")
    assert re.findall(r'<tr id="session-(\w+)">', only) == [second]
    none = await browser.text("recorder?project=none")
    assert "No session matches." in none


async def test_the_overview_counts_what_is_active_and_what_waits_for_somebody(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    await record(app)
    await learn(app)
    text = await browser.text("")
    tiles = re.findall(r'class="label">([^<]+)</div>\s*<a class="value"[^>]*>([^<]+)</a>', text)
    assert ("Active sessions", "1") in tiles
    assert ("Learnings to decide on", "1") in tiles


async def test_before_anything_was_recorded_the_page_says_how_to_begin(
    browser: Browser,  # noqa: F811
) -> None:
    assert "penstock hooks install claude-code" in await browser.text("recorder")
    assert "Nothing was learned yet." in await browser.text("recorder/learnings")
    assert "Nothing had to be taken out" in await browser.text("recorder/sanitiser")
    assert "No tool was used." in await browser.text("recorder/metrics")


async def test_a_session_is_drawn_with_its_turns_tools_changes_and_commits(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    session = await record(app)
    text = await browser.text(f"recorder/sessions/{session}")
    [drawn] = re.findall(r'<svg width="100%" height="\d+" role="group".*?</svg>', text, re.DOTALL)
    assert 'aria-label="Turn 1, complete' in drawn
    assert "make sandbox" in unescape(drawn)
    assert "commit " in drawn
    lanes = re.findall(r'<li><span class="clip" title="([^"]+)"', text)
    assert lanes[0] == "Turns"
    assert {"Bash", "Edit", "Changes", "Commits"} <= set(lanes)
    assert len(re.findall(r'<article class="turn"', text)) == 2
    assert "The retry budget was reset by every 429" in text
    assert "2 failed, 18 passed" in text
    assert "src/payments/webhook.py" in text
    assert "Keep the retry budget on the event" in text


async def test_every_place_in_the_picture_leads_to_a_turn_that_is_there(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    session = await record(app, REVIEW)
    text = await browser.text(f"recorder/sessions/{session}")
    targets = set(re.findall(r'href="/recorder/sessions/\w+\?turns=1#turn-(\d+)"', text))
    there = set(re.findall(r'<article class="turn" id="turn-(\d+)"', text))
    assert targets
    assert targets <= there


async def test_hostile_text_is_shown_and_does_nothing(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    at = app.store.clock.now() - 1_000
    payload = {"prompt": HOSTILE, "cwd": f"/srv/{HOSTILE}"}
    told = Captured(
        platform="claude_code",
        session_id=HOSTILE,
        hook_type="UserPromptSubmit",
        event_type="user_prompt",
        event_id="e1",
        timestamp=at,
        payload=payload,
        source="hook",
        messages=(Message("user", HOSTILE),),
    )
    await write(app, [told])
    session = await record(app, BUTTONS, "s2")
    await learn(app, title=HOSTILE, content=HOSTILE, tags=[HOSTILE])
    for path in ("recorder", f"recorder/sessions/{session}", "recorder/search?text=onerror"):
        assert "<img" not in await browser.text(path)
    assert "<img" not in await browser.text("recorder/learnings")


async def test_a_search_marks_what_it_found(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    session = await record(app)
    text = await browser.text("recorder/search?text=budget")
    assert "<mark>budget</mark>" in text
    assert f"recorder/sessions/{session}" in text
    assert "Nothing was found." in await browser.text("recorder/search?text=walrus")


async def test_figures_are_charted_and_tools_compared(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    await record(app)
    text = await browser.text("recorder/metrics?span=30d")
    titles = ("Changes kept", "Productivity", "Sessions per day", "How long tools take")
    for title in (*titles, "Active sessions"):
        assert f">{title}</h2>" in text
    assert 'id="tool-Bash"' in text
    assert "claude-sonnet-4-5" in text


async def test_active_sessions_are_a_curve_by_the_hour_and_by_peaks(app: Penstock) -> None:
    for n in range(3):
        await record(app, session=f"s{n}")
    now = app.store.clock.now()
    hours = await Sessions(app).active(since=now - DAY_MS, until=now + 1)
    assert max(count for _, count in hours) == 3
    for days, step in ((1, HOUR_MS), (7, HOUR_MS), (30, 6 * HOUR_MS), (90, DAY_MS)):
        drawn = _active(hours, now - days * DAY_MS, now)
        assert {b - a for a, b in zip(drawn["times"], drawn["times"][1:], strict=False)} == {step}
        [line] = drawn["lines"]
        assert max(line["values"]) == 3
        assert line["values"].count(0.0) >= len(line["values"]) - 2


async def test_what_the_recorder_s_own_models_cost_is_shown(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    await record(app)
    assert "Our own models" not in await browser.text("recorder/metrics")
    now = app.store.clock.now()
    call = ("c1", "", None, "extract_learning", "claude-haiku-4-5", 1_200, 300, 0.0027, now - 1)
    await app.transact(lambda tx: tx.recorder.run("reserve_cost", call))
    text = await browser.text("recorder/metrics")
    assert "Our own models" in text
    assert "extract learning" in text
    assert "$0.003" in text


async def test_a_learning_is_edited_approved_and_rejected_from_its_page(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    await record(app)
    learning = await learn(app)
    text = await browser.text("recorder/learnings")
    assert "Keep a retry budget with its work" in text
    assert "confidence 80 %" in text
    form = {
        "learning": learning,
        "action": "edit",
        "title": "A budget belongs to its work",
        "content": "Not to the loop.",
        "category": "pattern",
        "tags": "retries, budgets",
    }
    told = await browser.follow(await browser.send("recorder/learnings", form))
    assert "Saved: A budget belongs to its work." in told
    for action, word in (("approve", "Approved"), ("reject", "Rejected")):
        sent = {"learning": learning, "action": action}
        told = await browser.follow(await browser.send("recorder/learnings", sent))
        assert f"{word}: A budget belongs to its work." in told
    found = await Learnings(app).get(learning)
    assert (found.status, found.category, found.tags) == (
        "rejected",
        "pattern",
        ["retries", "budgets"],
    )
    wrong = await browser.send("recorder/learnings", {"learning": learning, "action": "burn"})
    assert "one of: approve, reject, edit, revoke" in await browser.follow(wrong)


async def test_the_report_names_rules_and_never_a_value(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    at = app.store.clock.now() - 1_000
    found = (Redaction("email", "email", "ab" * 32, "[REDACTED_EMAIL]"),) * 3
    message = Message("user", "mail [REDACTED_EMAIL]", redactions=found)
    told = Captured(
        platform="codex",
        session_id="s9",
        hook_type="UserPromptSubmit",
        event_type="user_prompt",
        event_id="e9",
        timestamp=at,
        payload={"prompt": "mail [REDACTED_EMAIL]"},
        source="hook",
        messages=(message,),
    )
    await write(app, [told])
    text = await browser.text("recorder/sanitiser")
    assert '<tr id="rule-email-rule">' in text
    assert "ab" * 8 not in text, "not even its hash"


async def test_a_session_is_deleted_after_a_yes_and_the_page_proves_it(
    app: Penstock,
    browser: Browser,  # noqa: F811
) -> None:
    session = await record(app)
    path = f"recorder/sessions/{session}/delete"
    asked = await browser.text(path)
    assert "Delete this session?" in asked
    await browser.send(path, {})
    proved = await browser.text(path)
    assert "Nothing is left" in proved
    assert set(re.findall(r"<dd>(\d+)</dd>", proved)) == {"0"}
    assert await app.recorder.sessions.list() == []


async def test_a_tenant_sees_its_own_and_only_an_admin_deletes(
    app: Penstock,
    log_in: Any,  # noqa: F811
) -> None:
    north, south = await record(app, tenant="north"), await record(app, tenant="south")
    reader: Browser = await log_in(Scope.READ, tenant_id="north")
    text = await reader.text("recorder")
    assert re.findall(r'<tr id="session-(\w+)">', text) == [north]
    assert (await reader.open(f"recorder/sessions/{south}")).status_code == 404
    assert (await reader.open(f"recorder/sessions/{north}/delete")).status_code == 403
    assert "Nothing was found." not in await reader.text("recorder/search?text=budget")
