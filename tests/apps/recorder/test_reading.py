"""Sessions are listed by pages, found by how they begin, summed up, and searched by words."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import conversations, metrics
from penstock.apps.recorder.captured import Captured, Message, conversation_id
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.reading import DAY, HOUR, SessionNotFound, Sessions, entropy
from penstock.apps.recorder.records import SessionFilter
from penstock.apps.recorder.search import Words
from penstock.apps.recorder.writing import write
from penstock.events import catch_up
from penstock.model.errors import InvalidOption
from penstock.testing import FakeClock
from tests.support.places import find_place

NOW = 1_767_268_800_000
KINDS = ("sqlite", "postgres")


@pytest.fixture(params=KINDS)
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    async with Penstock(place.url, extensions=[recorder], clock=FakeClock(NOW)) as app:
        yield app


def told(session: str, hook: str, at: int, /, text: str = "", **payload: Any) -> Captured:
    """A hook of Claude Code, and what somebody said in it."""
    tenant = payload.pop("tenant", "")
    role = {"UserPromptSubmit": "user", "Stop": "assistant"}.get(hook, "tool")
    return Captured(
        platform=payload.pop("platform", "claude_code"),
        session_id=session,
        hook_type=hook,
        event_type="trace",
        event_id=f"{session}-{tenant}-{hook}-{at}",
        timestamp=at,
        payload={"cwd": payload.pop("cwd", "/work/shop"), **payload},
        source="hook",
        messages=(Message(role, text),) if text else (),
        tenant_id=tenant,
    )


def a_session(session: str, at: int, text: str = "Fix it.", **about: Any) -> list[Captured]:
    """A turn with one tool and one change, which took ten seconds."""
    edit = {"file_path": "/work/shop/a.py", "old_string": "1", "new_string": "2"}
    tool = {"tool_name": "Edit", "tool_input": edit, "tool_use_id": f"{session}-1"}
    return [
        told(session, "UserPromptSubmit", at, text, prompt=text, **about),
        told(session, "PreToolUse", at + 1_000, **tool, **about),
        told(session, "PostToolUse", at + 3_000, "done", tool_response={}, **tool, **about),
        told(session, "Stop", at + 10_000, "It is done.", last_assistant_message="Done.", **about),
    ]


async def record(app: Penstock, *sessions: list[Captured]) -> Sessions:
    """Write sessions, and have them understood."""
    for session in sessions:
        await write(app, session)
    for consumer in (conversations.NAME, metrics.NAME):
        await catch_up(app, consumer)
    return Sessions(app)


async def test_pages_go_on_where_the_one_before_ended(app: Penstock) -> None:
    sessions = await record(app, *(a_session(f"s{n}", NOW - n * HOUR) for n in range(5)))
    first = await sessions.list(SessionFilter(limit=2))
    assert [row.session_id for row in first] == ["s0", "s1"]
    second = await sessions.list(SessionFilter(limit=2, before=first[-1].place))
    assert [row.session_id for row in second] == ["s2", "s3"]
    last = await sessions.list(SessionFilter(limit=2, before=second[-1].place))
    assert [row.session_id for row in last] == ["s4"]
    with pytest.raises(InvalidOption, match="place of a session"):
        await sessions.list(SessionFilter(before="yesterday"))


async def test_a_list_is_narrowed_by_what_is_asked_for(app: Penstock) -> None:
    ended = [*a_session("ended", NOW - 9_000), told("ended", "SessionEnd", NOW, reason="exit")]
    quiet = a_session("quiet", NOW - 3 * HOUR, cwd="/work/other")
    theirs = a_session("theirs", NOW - 20_000, tenant="acme")
    sessions = await record(app, ended, quiet, theirs)

    async def names(**where: Any) -> list[str]:
        return sorted(row.session_id for row in await sessions.list(SessionFilter(**where)))

    assert await names() == ["ended", "quiet", "theirs"]
    assert await names(tenant="acme") == ["theirs"]
    assert await names(project="other") == ["quiet"]
    assert await names(platform="cursor") == []
    assert await names(status="complete") == ["ended"]
    assert await names(status="active") == ["theirs"]
    assert await names(status="quiet") == ["quiet"]
    assert await names(until=NOW - HOUR) == ["quiet"]


async def test_a_session_is_found_by_how_its_id_begins(app: Penstock) -> None:
    sessions = await record(app, a_session("abcd-1", NOW), a_session("abcd-2", NOW))
    assert (await sessions.get("abcd-1")).row.session_id == "abcd-1"
    known = conversation_id("", "claude_code", "abcd-2")
    assert (await sessions.get(known[:8])).row.session_id == "abcd-2"
    with pytest.raises(SessionNotFound, match="Several sessions begin with 'abcd'"):
        await sessions.get("abcd")
    with pytest.raises(SessionNotFound, match="No session is 'zzzz'"):
        await sessions.get("zzzz")
    with pytest.raises(SessionNotFound):
        await sessions.get("abcd-1", tenant="acme")


async def test_a_commit_knows_its_sessions(app: Penstock) -> None:
    commit = told("s1", "git_commit", NOW + 1, hash="8c1f0e5d2b", branch="main", files=["a.py"])
    sessions = await record(
        app, [*a_session("s1", NOW), commit._replace(event_type="git_commit", source="git")]
    )
    [row] = await sessions.of_commit("8c1f0e")
    assert row.session_id == "s1"
    assert await sessions.of_commit("8c1f0f") == []
    assert await sessions.of_commit("8c1f0e", tenant="acme") == []
    with pytest.raises(InvalidOption, match="4 characters"):
        await sessions.of_commit("8c")


async def test_figures_are_those_of_a_span_of_time(app: Penstock) -> None:
    sessions = await record(
        app,
        a_session("today", NOW - 30_000),
        a_session("again", NOW - 2 * DAY),
        [told("again", "SessionEnd", NOW - 2 * DAY + 60_000)],
        a_session("theirs", NOW - 30_000, tenant="acme"),
    )
    found = await sessions.stats(tenant="")
    assert (found.sessions, found.active, found.turns, found.tools) == (2, 1, 2, 2)
    assert found.latency["Edit"].count == 2
    assert (found.latency["Edit"].p50, found.latency["Edit"].p99) == (2_000, 2_000)
    assert found.response is not None
    assert found.response.p95 == 1_000
    assert (found.acceptance_rate, found.direct_accept_rate, found.rejection_rate) == (1, 1, 0)
    assert [(day.date, day.sessions) for day in found.by_day] == [
        ("2025-12-30", 1),
        ("2026-01-01", 1),
    ]
    assert (await sessions.stats(tenant="", since=NOW - DAY)).sessions == 1
    assert (await sessions.stats()).sessions == 3
    nothing = await sessions.stats(tenant="nobody")
    assert (nothing.sessions, nothing.latency, nothing.response) == (0, {}, None)


async def test_percentiles_are_exact(app: Penstock) -> None:
    hooks = [told("s1", "UserPromptSubmit", NOW, prompt="Go.")]
    at = NOW
    for n in range(1, 102):
        tool = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": f"t{n}"}
        hooks.append(told("s1", "PreToolUse", at := at + 1, **tool))
        hooks.append(told("s1", "PostToolUse", at := at + n, **tool))
    found = (await (await record(app, hooks)).stats()).latency["Bash"]
    assert (found.count, found.p50, found.p95, found.p99) == (101, 51, 96, 100)


async def test_words_are_found_wherever_they_stand_in_a_message(app: Penstock) -> None:
    sessions = await record(
        app,
        a_session("s1", NOW - 50_000, "Why does src/cart_total.py raise KeyError('sum')?"),
        a_session("s2", NOW - 20_000, "The sum of the cart is wrong."),
        a_session("s3", NOW, "Nothing to see here.", tenant="acme"),
    )

    async def found(text: str, **where: Any) -> list[str]:
        hits = await sessions.search(text, **where)
        rows = {row.id: row.session_id for row in await sessions.list()}
        return [rows[hit.conversation_id] for hit in hits]

    assert await found("sum") == ["s2", "s1"], "the latest first"
    assert await found("KeyError sum") == ["s1"], "all words"
    assert await found("sum of") == ["s2"]
    assert await found('"the sum"') == ["s2"], "side by side"
    assert await found('"sum the"') == []
    assert await found("keyer*") == ["s1"], "how one begins"
    assert await found("cart_total") == ["s1"], "an underscore parts words"
    assert await found("nothing", tenant="acme") == ["s3"]
    assert await found("nothing", tenant="") == []
    assert await found("sum", limit=1) == ["s2"]
    for odd in ("", '"', "* OR", "NEAR(", "a:b", "'; --", "&|!()", "\0"):
        assert await found(odd) == [], odd
    [hit] = await sessions.search("keyerror")
    assert hit.snippet == "Why does src/cart_total.py raise ‹KeyError›('sum')?"


async def test_a_search_forgets_what_a_message_no_longer_says(app: Penstock) -> None:
    sessions = await record(app, a_session("s1", NOW, "The password is swordfish."))
    [hit] = await sessions.search("swordfish")
    if "postgres" in app.settings.url:
        return  # the index is the server's own
    store: Any = app.store

    def change(tx: Any) -> None:
        sql = "UPDATE recorder_messages SET content = 'The password is [REDACTED].' WHERE id = ?"
        tx.connection.execute(sql, (hit.message_id,))

    await store.tables.db.write(change)
    assert await sessions.search("swordfish") == []
    assert "swordfish" not in await words_known(store)
    assert len(await sessions.search("redacted")) == 1
    await store.tables.db.write(
        lambda tx: tx.connection.execute("DELETE FROM recorder_messages").fetchall()
    )
    assert await sessions.search("password") == []
    assert await words_known(store) == set(), "nothing of it is left in the index either"


async def words_known(store: Any) -> set[str]:
    """All words that the index of a SQLite file holds."""

    def ask(tx: Any) -> set[str]:
        execute = tx.connection.execute
        execute("CREATE VIRTUAL TABLE temp.known USING fts5vocab(main, recorder_words, row)")
        found = {str(term) for (term,) in execute("SELECT term FROM temp.known")}
        execute("DROP TABLE temp.known")
        return found

    known: set[str] = await store.tables.db.write(ask)
    return known


async def test_messages_come_in_their_order(app: Penstock) -> None:
    sessions = await record(app, a_session("s1", NOW))
    id_ = conversation_id("", "claude_code", "s1")
    found = await sessions.messages(id_)
    assert [(each.sequence, each.role, each.content) for each in found] == [
        (1, "user", "Fix it."),
        (2, "tool", "done"),
        (3, "assistant", "It is done."),
    ]
    assert [each.sequence for each in await sessions.messages(id_, after=1, limit=1)] == [2]


def test_a_snippet_is_what_stands_around_a_word() -> None:
    text = "x" * 300 + " the needle, and another Needle " + "y" * 300
    found = Words("needle").snippet(text)
    assert found.startswith("…")
    assert found.endswith("…")
    assert "the ‹needle›, and another ‹Needle›" in found
    assert len(found) < 250


def test_diversity_is_an_entropy() -> None:
    assert entropy([]) == entropy([7]) == 0
    assert entropy([1, 1]) == 1
    assert entropy([1, 1, 1, 1]) == 2
