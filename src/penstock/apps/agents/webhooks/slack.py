"""`slack-sync`: what was written in a Slack channel since the last time becomes memories.

Slack gives history in pages, from the newest message to the oldest, with a cursor to the next. The
messages of a page are remembered, then the cursor is saved: whoever goes on after a crash, or after
Slack asked for patience, reads at most one page twice, and a message is remembered once however
often it is read. Only the last page moves the place from which the next run reads.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from html import unescape
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.app.keys import read_key
from penstock.apps.agents.memory.records import NewMemory
from penstock.apps.agents.webhooks.jobs import SlackData, SlackSynced
from penstock.model.errors import MissingExtra, PenstockError
from penstock.model.outcome import Snooze
from penstock.model.redact import redact
from penstock.model.retry_after import retry_after_ms

if TYPE_CHECKING:
    import httpx

    from penstock.app.context import Context
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import SlackConnection, SlackSettings

LONGEST_ANSWER = 8 << 20
LEAST_WAIT, MOST_WAIT = 1.0, 3_600.0
SOURCE = "slack"
_PASSING = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "ratelimited"}
)
_SPOKEN = frozenset({None, "bot_message", "file_share", "me_message", "thread_broadcast"})
"""Kinds of messages in which somebody says something; others tell who joined, and such."""
_MARKED = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


class SlackRefused(PenstockError):
    """An answer of Slack that another try does not change, or a connection that is not there."""

    def __init__(self, connection: str, problem: str) -> None:
        self.connection = connection
        self.problem = problem
        super().__init__(f"Slack connection {connection!r} cannot be read: {problem}.")


class SlackAway(PenstockError):
    """Slack does not answer, or not now; `retry_after` is how long it asked to wait."""

    def __init__(self, problem: str, status: int = 503, retry_after: str | None = None) -> None:
        self.problem = problem
        self.status = status
        self.retry_after = retry_after
        super().__init__(f"Slack is away: {problem}.")


class Message(Struct, kw_only=True):
    """A message as Slack gives it, as far as it matters here."""

    ts: str
    text: str = ""
    user: str | None = None
    username: str | None = None
    subtype: str | None = None
    thread_ts: str | None = None
    reply_count: int = 0


class Page(Struct, kw_only=True):
    """A page of messages, and where the next one begins."""

    ok: bool
    error: str | None = None
    messages: list[Message] = []
    has_more: bool = False
    response_metadata: dict[str, Any] | None = None

    @property
    def cursor(self) -> str:
        """Where the next page begins; empty after the last one."""
        return str((self.response_metadata or {}).get("next_cursor") or "")


class Place(Struct, omit_defaults=True):
    """How far a run has come: saved after every page."""

    newest: str = ""
    cursor: str = ""
    pages: int = 0
    messages: int = 0
    memories: int = 0


async def sync(data: SlackData, ctx: "Context") -> SlackSynced:
    """Read a channel from its newest message back to where the last run began."""
    async with ctx.app as app:
        settings: SlackSettings = app.extensions.settings("agents").slack
        connection = _connection(settings, data.connection, ctx.job.tenant_id)
        async with _client(settings, connection) as client:
            slack = Slack(client, settings, data.connection)
            try:
                return await _read(app, slack, data, ctx)
            except SlackAway as away:
                asked = retry_after_ms(away, app.store.clock.now())
                if asked is None:
                    raise
                seconds = min(max(asked / 1000, LEAST_WAIT), MOST_WAIT)
                raise Snooze(seconds, str(away)) from away


async def _read(app: "Penstock", slack: "Slack", data: SlackData, ctx: "Context") -> SlackSynced:
    key = (ctx.job.tenant_id, data.connection, data.channel)
    known = await app.read(lambda tx: tx.agents.value("slack_newest", key))
    since = known or data.oldest
    place = msgspec.convert(ctx.checkpoint or {}, Place)
    while True:
        try:
            page = await slack.history(data.channel, since, place.cursor)
        except SlackRefused as refused:
            if refused.problem != "invalid_cursor" or not place.cursor:
                raise
            place = Place()  # it was kept too long: what was remembered is not remembered twice
            continue
        if not place.cursor and page.messages:
            place.newest = page.messages[0].ts
        said = [*page.messages]
        if data.threads:
            for parent in page.messages:
                if parent.reply_count and parent.thread_ts in (None, parent.ts):
                    said += [reply async for reply in slack.replies(data.channel, parent.ts)]
        new = memories_of(data, said, ctx.job.workspace_id)
        if new:
            added = await app.agents.memories.add_many(new, tenant=ctx.job.tenant_id)
            place.memories += sum(each.stored for each in added)
        place.pages += 1
        place.messages += len(new)
        place.cursor = page.cursor
        if not page.has_more or not place.cursor:
            break
        await ctx.save_checkpoint(msgspec.to_builtins(place))
        ctx.progress({"phase": "reading", "page": place.pages})
    newest = place.newest or since
    row: dict[str, Any] = dict(zip(("tenant_id", "connection", "channel"), key, strict=True))
    row |= {"newest": newest, "messages": place.messages}
    await app.transact(lambda tx: tx.agents.run("slack_synced", row | {"now": tx.now}))
    return SlackSynced(
        pages=place.pages, messages=place.messages, memories=place.memories, newest=newest
    )


def memories_of(
    data: SlackData, messages: Sequence[Message], workspace: str | None
) -> list[NewMemory]:
    """Return what is to be remembered of messages, the oldest first."""
    found: dict[str, NewMemory] = {}
    for message in sorted(messages, key=lambda message: message.ts):
        text = plain(message.text)
        if not text or message.subtype not in _SPOKEN:
            continue
        author = message.user or message.username
        found[message.ts] = NewMemory(
            content=text,
            user_id=data.user_id or author,
            workspace_id=workspace,
            importance=data.importance,
            source_type=SOURCE,
            source_id=f"{data.channel}/{message.ts}",
            at=_milliseconds(message.ts),
            metadata={
                "channel": data.channel,
                "ts": message.ts,
                "author": author,
                "thread": message.thread_ts,
            },
        )
    return list(found.values())


def plain(text: str) -> str:
    """Return a text without Slack's marks: `<@U1|ada>` is `@ada`, `<https://a|b>` is `b`."""
    return unescape(_MARKED.sub(_unmarked, text)).strip()


def _unmarked(found: re.Match[str]) -> str:
    what, label = found[1], found[2]
    if what[0] in "@#":
        return f"{what[0]}{label or what[1:]}"
    if what[0] == "!":
        return label or f"@{what[1:].partition('^')[0]}"
    return f"{label} ({what})" if label and label != what else what


def _milliseconds(ts: str) -> int:
    """Return when a message was written; Slack writes seconds, a dot and a number."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1000 + int((fraction + "000")[:3])


class Slack:
    """The two methods of Slack's API that read messages."""

    def __init__(
        self, client: "httpx.AsyncClient", settings: "SlackSettings", connection: str
    ) -> None:
        self._client = client
        self._base = settings.base_url.rstrip("/")
        self._page = settings.page
        self._connection = connection

    async def history(self, channel: str, since: str, cursor: str) -> Page:
        """Return a page of what was written in a channel after a message."""
        return await self._ask(
            "conversations.history", channel=channel, oldest=since, cursor=cursor
        )

    async def replies(self, channel: str, thread: str) -> AsyncIterator[Message]:
        """Go through the answers to a message, without the message itself."""
        cursor = ""
        while True:
            page = await self._ask(
                "conversations.replies", channel=channel, ts=thread, cursor=cursor
            )
            for message in page.messages:
                if message.ts != thread:
                    yield message
            cursor = page.cursor
            if not page.has_more or not cursor:
                return

    async def _ask(self, method: str, **given: str) -> Page:
        import httpx

        asked = {name: value for name, value in given.items() if value} | {"limit": self._page}
        try:
            async with self._client.stream("GET", f"{self._base}/{method}", params=asked) as answer:
                content = await _content(answer)
        except httpx.HTTPError as error:
            raise SlackAway(redact(f"{type(error).__name__}: {error}")[:200]) from error
        status = answer.status_code
        if status == 429 or status >= 500:
            after = answer.headers.get("retry-after")
            raise SlackAway(f"it answered {status}", status, after)
        try:
            page = msgspec.json.decode(content, type=Page)
        except msgspec.MsgspecError as error:
            raise SlackRefused(
                self._connection, f"{method} answered {status} with something else than a page"
            ) from error
        if page.ok:
            return page
        problem = redact(page.error or "no reason given")[:100]
        if problem in _PASSING:
            raise SlackAway(problem, 429 if problem == "ratelimited" else 503)
        raise SlackRefused(self._connection, problem)


async def _content(answer: "httpx.Response") -> bytes:
    parts = bytearray()
    async for part in answer.aiter_bytes():
        parts += part
        if len(parts) > LONGEST_ANSWER:
            raise SlackAway(f"its answer is over {LONGEST_ANSWER:,} bytes")
    return bytes(parts)


def _connection(settings: "SlackSettings", name: str, tenant: str) -> "SlackConnection":
    """Return a connection that this tenant may use."""
    known: Mapping[str, SlackConnection] = settings.connections
    found = known.get(name)
    if found is None or found.tenant != tenant:
        problem = f"tenant {tenant!r} has none of this name under [penstock.agents.slack]"
        raise SlackRefused(name, problem)
    return found


def _client(settings: "SlackSettings", connection: "SlackConnection") -> "httpx.AsyncClient":
    """Return a client that follows no redirect and takes no proxy from the environment."""
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra("agents", "httpx") from error
    return httpx.AsyncClient(
        timeout=settings.timeout,
        trust_env=False,
        follow_redirects=False,
        headers={"Authorization": f"Bearer {read_key(connection.token)}"},
    )
