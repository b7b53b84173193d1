"""`slack-sync`: the history of a channel becomes memories, page by page and each message once."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy
import pytest

from penstock import Penstock
from penstock.apps.agents.webhooks.slack import plain
from penstock.config import Settings
from penstock.testing import FakeClock, drain
from tests.apps.agents.conftest import WITH_TABLES
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.slack_server import TOKEN, Slack, slack_server

EMBEDDER = {"provider": f"{__name__}:Letters"}
BEGAN = 1_767_225_600


class Letters:
    """An embedder that knows which words a text has, and loads at once."""

    model = "letters"
    dimensions = 64

    def __init__(self, **_: Any) -> None: ...

    def embed(self, texts: Sequence[str]) -> Any:
        found = numpy.zeros((len(texts), self.dimensions), dtype=numpy.float32)
        for row, text in zip(found, texts, strict=True):
            for word in text.lower().split():
                row[crc32(word.encode()) % self.dimensions] += 1
            row /= max(1.0, float(numpy.linalg.norm(row)))
        return found


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[Slack]:
    async with slack_server() as made:
        made.token = tmp_path / "token"
        made.token.write_text(TOKEN)
        made.token.chmod(0o600)
        yield made


def told_of(slack: Slack, page: int = 2) -> dict[str, Any]:
    return {
        "base_url": slack.url,
        "page": page,
        "connections": {"shop": {"token": f"file:{slack.token}", "tenant": "north"}},
    }


BOTH = pytest.mark.parametrize("reading", WITH_TABLES, indirect=True)


@pytest.fixture
async def reading(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, slack: Slack
) -> AsyncIterator[Penstock]:
    """An application that reads Slack."""
    url = f"sqlite:///{tmp_path}/work.db"
    if getattr(request, "param", "") == "postgres":
        url = request.getfixturevalue("postgres_store_url")
    own: dict[str, Any] = {"folder": str(tmp_path / "agents"), "schedules": False}
    own |= {"slack": told_of(slack), "embedder": EMBEDDER}
    settings = Settings(extension={"agents": own})
    async with Penstock(url, extensions=["agents"], settings=settings, clock=clock) as app:
        yield app


async def sync(app: Penstock, clock: FakeClock, through: float = 0, **more: Any) -> Any:
    data = {"connection": "shop", "channel": "C1", **more}
    handle = await app.agents.enqueue("slack-sync", data, tenant="north", max_retries=1)
    await drain(app, clock=clock, through=through)
    return await app.get(handle.id)


def remembered(app: Penstock) -> list[tuple[Any, ...]]:
    return rows(
        app,
        "SELECT content, user_id, tenant_id, source_type, source_id, valid_from "
        "FROM agents_memories ORDER BY source_id",
    )


def five_facts(slack: Slack) -> None:
    for n, fact in enumerate(
        (
            "Ada moved to Turin in spring.",
            "The invoice printer is broken again.",
            "Release 4.2 ships on Monday.",
            "Bert is allergic to peanuts.",
            "Our office plant is called Gerald.",
        )
    ):
        slack.say("C1", f"{BEGAN + n}.000100", fact, user=f"U{n}")


@BOTH
async def test_a_channel_becomes_memories_and_later_only_what_is_new(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    five_facts(slack)
    job = await sync(reading, clock)
    assert json.loads(job.result) == {
        "pages": 3,
        "messages": 5,
        "memories": 5,
        "newest": f"{BEGAN + 4}.000100",
    }
    found = remembered(reading)
    assert found[0] == (
        *("Ada moved to Turin in spring.", "U0", "north", "slack"),
        *(f"C1/{BEGAN}.000100", BEGAN * 1000),
    )
    assert len(found) == 5
    slack.say("C1", f"{BEGAN + 9}.000100", "The new door code is on the intranet.")
    slack.asked.clear()
    again = json.loads((await sync(reading, clock)).result)
    assert (again["pages"], again["messages"], again["memories"]) == (1, 1, 1)
    assert slack.asked[0][1]["oldest"] == f"{BEGAN + 4}.000100"
    assert len(remembered(reading)) == 6
    nothing = json.loads((await sync(reading, clock)).result)
    assert (nothing["messages"], nothing["newest"]) == (0, f"{BEGAN + 9}.000100")
    assert rows(
        reading, "SELECT tenant_id, connection, channel, messages FROM agents_slack_channels"
    ) == [("north", "shop", "C1", 6)]


@BOTH
async def test_where_slack_asks_for_patience_it_goes_on_after_that(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    five_facts(slack)
    slack.patience = 1
    data = {"connection": "shop", "channel": "C1"}
    handle = await reading.agents.enqueue("slack-sync", data, tenant="north")
    await drain(reading)
    assert len(remembered(reading)) == 2  # the page before it
    slack.patience = None
    slack.asked.clear()
    clock.advance(29)
    await drain(reading)
    assert slack.asked == []
    clock.advance(2)
    await drain(reading)
    job = await reading.get(handle.id)
    assert (job.status, job.attempts, job.snoozes) == ("completed", 1, 1)
    assert json.loads(job.result)["messages"] == 5
    assert slack.asked[0][1]["cursor"]  # not from the beginning
    assert len(remembered(reading)) == 5


async def test_slack_may_ask_for_patience_again_and_again(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    five_facts(slack)
    slack.patience = 0
    data = {"connection": "shop", "channel": "C1"}
    handle = await reading.agents.enqueue("slack-sync", data, tenant="north", max_retries=1)
    for _ in range(6):
        await drain(reading)
        clock.advance(31)
    slack.patience = None
    await drain(reading)
    assert (await reading.get(handle.id)).status == "completed"


async def test_answers_to_a_message_are_remembered_as_well(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    thread = f"{BEGAN}.000100"
    slack.say("C1", thread, "Who waters the plants?", reply_count=3, thread_ts=thread)
    for n, said in enumerate(
        ("Nobody does, they are plastic.", "I do it on Fridays.", "The robot vacuum tried once.")
    ):
        slack.say("C1", f"{BEGAN + 10 + n}.000100", said, thread_ts=thread)
    await sync(reading, clock)
    assert [row[0] for row in remembered(reading)] == [
        "Who waters the plants?",
        "Nobody does, they are plastic.",
        "I do it on Fridays.",
        "The robot vacuum tried once.",
    ]


async def test_who_joined_and_empty_messages_are_not_remembered(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    slack.say("C1", f"{BEGAN}.1", "<@U1> has joined the channel", subtype="channel_join")
    slack.say("C1", f"{BEGAN}.2", "")
    slack.say("C1", f"{BEGAN}.3", "Lunch is at noon.", user_profile={"odd": [1, 2]})
    job = await sync(reading, clock, userId="ada")
    assert json.loads(job.result)["messages"] == 1
    [row] = remembered(reading)
    assert row[:2] == ("Lunch is at noon.", "ada")


async def test_a_cursor_that_slack_has_forgotten_costs_a_second_look(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    five_facts(slack)
    slack.forgets_cursors = True
    job = await sync(reading, clock)
    assert json.loads(job.result)["messages"] == 5
    assert len(remembered(reading)) == 5


async def test_a_server_that_breaks_is_tried_again(
    reading: Penstock, slack: Slack, clock: FakeClock
) -> None:
    five_facts(slack)
    slack.breaks = [502]
    job = await sync(reading, clock, through=60)
    assert job.status == "completed"
    assert len(remembered(reading)) == 5


@pytest.mark.parametrize(
    ("data", "tenant", "problem"),
    [
        ({"connection": "shop", "channel": "C9"}, "north", "channel_not_found"),
        ({"connection": "shop", "channel": "C1"}, "south", "tenant 'south' has none"),
        ({"connection": "other", "channel": "C1"}, "north", "tenant 'north' has none"),
    ],
)
async def test_what_another_try_does_not_change_is_given_up(
    reading: Penstock, slack: Slack, data: dict[str, Any], tenant: str, problem: str
) -> None:
    five_facts(slack)
    handle = await reading.agents.enqueue("slack-sync", data, tenant=tenant)
    await drain(reading)
    job = await reading.get(handle.id)
    assert job.status == "dead_letter"
    assert problem in job.error
    assert TOKEN not in str(rows(reading, "SELECT * FROM jobs"))


async def test_a_wrong_token_is_given_up(reading: Penstock, slack: Slack, clock: FakeClock) -> None:
    slack.token.write_text("another")
    job = await sync(reading, clock)
    assert (job.status, "invalid_auth" in job.error) == ("dead_letter", True)


@pytest.mark.parametrize(
    ("marked", "read"),
    [
        ("hello <@U1|ada> and <@U2>", "hello @ada and @U2"),
        ("see <#C1|general>, <!here>", "see #general, @here"),
        ("<https://a.example/?b=1&amp;c|docs> &lt;3", "docs (https://a.example/?b=1&c) <3"),
        ("<https://a.example>", "https://a.example"),
        ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
    ],
)
def test_marks_of_slack_are_taken_out(marked: str, read: str) -> None:
    assert plain(marked) == read


class Syncing(Play):
    """A channel is read."""

    def __init__(self, slack: Slack) -> None:
        self.settings = {"slack": told_of(slack, 3), "embedder": EMBEDDER}  # type: ignore[misc]

    async def enqueue(self, app: Penstock) -> None:
        data = {"connection": "shop", "channel": "C1"}
        await app.agents.enqueue("slack-sync", data, tenant="north")

    async def state(self, app: Penstock) -> Any:
        return remembered(app), rows(
            app, "SELECT channel, newest, messages FROM agents_slack_channels"
        )


@pytest.mark.thorough
async def test_a_sync_that_is_killed_and_resumed_remembers_everything_once(
    stage: Stage, slack: Slack
) -> None:
    five_facts(slack)
    found, channels = await twice_and_killed(stage, Syncing(slack))
    assert len(found) == 5
    assert channels == [("C1", f"{BEGAN + 4}.000100", 5)]
