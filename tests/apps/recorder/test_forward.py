"""What waits in the spool reaches the store: the recorder's own file, or a server."""

import asyncio
import json
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.apps.recorder import forward, hook, spool
from penstock.apps.recorder.captured import QUEUE, conversation_id
from penstock.apps.recorder.forward import Forwarding, flush_at_home, is_home
from penstock.apps.recorder.home import url
from penstock.events import InvalidEvent
from penstock.model.store_errors import StoreUnavailable
from tests.apps.recorder.payloads import SESSION, told
from tests.support.places import Place

WITH = ["events", "recorder"]
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")


def spool_session() -> None:
    """Have a session told while there is no file."""
    for event in EVENTS:
        hook.record("claude_code", ["", json.dumps(told("claude_code", event))])


@pytest.mark.every_store
async def test_what_hooks_spooled_is_moved_to_a_server_once(empty_home: Path, place: Place) -> None:
    if place.kind == "valkey":
        pytest.skip("it has no tables")
    spool_session()
    again = (empty_home / "recorder.spool").read_bytes()
    async with Penstock(**place.settings, extensions=WITH) as app:
        forwarding = Forwarding(app)
        assert await forwarding.run_once() == len(EVENTS)
        assert not spool.holds_any()
        assert await forwarding.run_once() == 0
        kept = [event.hook_type for event in await app.events.find()]
        assert kept == [*EVENTS]
        # Somebody died between the commit and the end of the file.
        (empty_home / "recorder.spool").write_bytes(again)
        await forwarding.run_once()
        assert len(await app.events.find()) == len(EVENTS)
        roles = await app.read(lambda tx: tx.recorder.rows("messages_of", CONVERSATION))
        assert [row[1] for row in roles] == ["user", "tool", "assistant"]


CONVERSATION = {
    "conversation_id": conversation_id("", "claude_code", SESSION),
    "after": 0,
    "limit": 10,
}


async def test_while_the_store_is_away_everything_stays(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool_session()

    async def away(*_: object) -> None:
        raise StoreUnavailable("postgresql://db", "it is down")

    async with Penstock(f"sqlite:///{empty_home}/other.db", extensions=WITH) as app:
        monkeypatch.setattr(forward, "write", away)
        with pytest.raises(StoreUnavailable):
            await Forwarding(app).run_once()
        monkeypatch.undo()
        monkeypatch.setenv("PENSTOCK_HOME", str(empty_home))
        assert await Forwarding(app).run_once() == len(EVENTS)


async def test_an_event_that_the_log_refuses_becomes_a_dead_letter_and_holds_up_no_other(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool_session()
    real = forward.write

    async def refusing(app: Penstock, captured: list[forward.Captured]) -> None:
        if any(one.hook_type == "PreToolUse" for one in captured):
            raise InvalidEvent(captured[0].event_id, "does not fit")
        await real(app, captured)

    monkeypatch.setattr(forward, "write", refusing)
    async with Penstock(f"sqlite:///{empty_home}/other.db", extensions=WITH) as app:
        assert await Forwarding(app).run_once() == len(EVENTS)
        assert len(await app.events.find()) == len(EVENTS) - 1
        [letter] = await app.events.dead.list()
        assert "does not fit" in letter.reason


async def test_the_leader_flushes_into_the_file_of_the_home_and_into_no_other(
    empty_home: Path,
) -> None:
    spool_session()
    async with Penstock(f"sqlite:///{empty_home}/other.db", extensions=WITH) as app:
        assert not is_home(app)
        await flush_at_home(app)
        assert spool.holds_any()
    async with Penstock(url(), extensions=WITH) as app:
        assert is_home(app)
        await flush_at_home(app)
        assert not spool.holds_any()
        assert len(await app.events.find()) == len(EVENTS)


async def test_forwarding_goes_on_until_it_is_cancelled(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "EVERY", 0.01)
    async with Penstock(f"sqlite:///{empty_home}/other.db", extensions=WITH) as app:
        spool_session()
        going = asyncio.create_task(forward.forward(app))
        async with asyncio.timeout(10):
            while len(await app.events.find()) < len(EVENTS):  # each look takes a turn of the loop
                continue
            spool_another_session()
            while len(await app.events.find()) == len(EVENTS):
                continue
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        assert going.cancelled()


def spool_another_session() -> None:
    """Spool one event of a session that `spool_session` does not have."""
    other = {**told("claude_code", "Stop"), "session_id": "another"}
    captured, _ = hook.captured_of("claude_code", ["", json.dumps(other)], 1_000)
    spool.append(spool.line_of(captured))


async def test_a_full_queue_leaves_the_spool_to_the_next_pass(empty_home: Path) -> None:
    async with Penstock(url(), extensions=WITH) as app:
        await app.controls.set_limit(queue=QUEUE, depth=1)
        spool_session()
        await flush_at_home(app)  # the messages of a session are validated by one job
        assert not spool.holds_any()
        spool_another_session()
        await flush_at_home(app)
        assert spool.holds_any()
        await app.controls.remove_limit(queue=QUEUE)
    async with Penstock(url(), extensions=WITH) as app:  # one that remembers no limit
        await flush_at_home(app)
        assert not spool.holds_any()
