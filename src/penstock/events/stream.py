"""The stream in front of the log: events wait in Redis until ingest writes them.

Other programs add entries, too, with these fields: event_id, timestamp, platform, session_id,
event_type, hook_type, metadata, payload (both JSON), enqueued_at, retry_count, tenant_id, person.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from redis.exceptions import ResponseError

from penstock.events.event import InvalidEvent, NewEvent
from penstock.model.clock import LATEST
from penstock.model.ids import derived_id
from penstock.model.store_errors import StoreError
from penstock.operate.health import Check, HealthStatus
from penstock.store.redis.connect import DEFAULT_NAMESPACE
from penstock.store.redis.errors import translate
from penstock.store.redis.server import Server, is_volatile, refuse_volatile

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

EVENTS = "telemetry:events"
LETTERS = "telemetry:dlq"
FEED = "cdc:events"
GROUP = "processors"

PAGE = 500
AT_ONCE = 500_000
"""Redis takes a million values with a command."""
REWRITE_SECONDS = 60.0

Fields = Sequence[bytes]
"""Names and values of an entry in turn, as the server tells them."""


class Entry(Struct, frozen=True):
    """An entry of a stream; one that was deleted while somebody had it has no fields."""

    id: str
    fields: Fields | None

    @property
    def milliseconds(self) -> int:
        """When it was added, as its id says."""
        return min(int(self.id.partition("-")[0]), LATEST)

    @property
    def size(self) -> int:
        """The bytes of its names and values."""
        return sum(map(len, self.fields or ()))


class StreamState(Struct, frozen=True, kw_only=True):
    """How much waits in the stream for ingest, and since when; `size` is in bytes of memory."""

    length: int
    unacknowledged: int
    oldest_at: int | None
    letters: int
    size: int = 0


def fields_of(event: NewEvent, now: int) -> list[str | bytes]:
    """An event as the fields of an entry; what is empty is left out."""
    fields: list[str | bytes] = ["event_id", event.event_id, "timestamp", str(event.timestamp)]
    fields += ["event_type", event.event_type, "enqueued_at", str(event.enqueued_at or now)]
    for name in ("platform", "session_id", "hook_type", "tenant_id", "person"):
        text = getattr(event, name)
        if text:
            fields += [name, text]
    if event.metadata:
        fields += ["metadata", _encoder.encode(event.metadata)]
    fields += ["payload", _encoder.encode(event.payload), "retry_count", str(event.retry_count)]
    return fields


def event_of(entry: Entry) -> NewEvent:
    """The event of an entry; InvalidEvent if it is none.

    Without an id it is known by its entry, so that an entry that is read again is the same event.
    """
    given = iter(entry.fields or ())
    raw = dict(zip(given, given, strict=True))
    take = raw.pop
    event_id = ""
    try:
        event_id = take(b"event_id", b"").decode()
        enqueued_at = _time(take(b"enqueued_at", b""))
        timestamp = _time(take(b"timestamp", b""))
        if timestamp is None:
            timestamp = enqueued_at
        if not event_id:
            event_id = derived_id(entry.milliseconds, EVENTS, entry.id)
            timestamp = entry.milliseconds if timestamp is None else timestamp
        payload = take(b"payload", b"")
        metadata = take(b"metadata", b"")
        event = NewEvent(
            event_id=event_id,
            timestamp=timestamp,
            enqueued_at=enqueued_at,
            event_type=take(b"event_type", b"").decode(),
            session_id=take(b"session_id", b"").decode(),
            platform=take(b"platform", b"").decode(),
            hook_type=take(b"hook_type", b"").decode() or None,
            tenant_id=take(b"tenant_id", b"").decode(),
            person=take(b"person", b"").decode() or None,
            payload=_object(payload) if payload else {},
            metadata=_object(metadata) if metadata else {},
        )
        take(b"retry_count", None)
        for name, value in raw.items():  # what we know nothing of is kept beside the rest
            event.metadata.setdefault(name.decode(), value.decode())
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidEvent(event_id, f"cannot be read ({error})") from error
    return event


def _time(given: bytes) -> int | str | None:
    if given.isdigit():
        return int(given)
    text = given.decode()
    return int(text) if text.removeprefix("-").isdecimal() else text or None


_encoder = msgspec.json.Encoder()
_object = msgspec.json.Decoder(dict[str, Any]).decode


@cache
def _script(name: str) -> str:
    return files("penstock.events").joinpath("lua", f"{name}.lua").read_text("utf-8")


class Stream:
    """The streams of one Redis.

    With `?namespace=NAME` in its URL their names begin with `{NAME}:`, for several installations
    on one server, or for a cluster.
    """

    def __init__(self, url: str, *, allow_volatile: bool = False) -> None:
        self.server = Server(url)
        namespace = self.server.address.namespace
        self._prefix = "" if namespace == DEFAULT_NAMESPACE else self.server.prefix
        self._may_be_volatile = allow_volatile or self.server.address.allow_volatile
        self._checked = False

    def key(self, name: str) -> str:
        """A key as it is called on the server."""
        return self._prefix + name

    async def ask(self, *command: Any) -> Any:
        """The answer to a command; the first one makes sure that the server keeps what it takes."""
        await self.open()
        return await self.server.ask(*command)

    async def call(self, script: str, keys: Sequence[str], *arguments: Any) -> Any:
        """The answer of one of our scripts."""
        return await self.ask("EVAL", _script(script), len(keys), *keys, *arguments)

    async def call_all(
        self, script: str, keys: Sequence[str], arguments: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """The answers of one of our scripts to each of these arguments, in one round trip."""
        text = _script(script)
        return await self.ask_all([("EVAL", text, len(keys), *keys, *each) for each in arguments])

    async def ask_all(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers to commands that are sent together; the first error is raised."""
        await self.open()
        answers = await self.server.replies(commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise translate(self.server.url, answer) from answer
        return answers

    async def open(self) -> None:
        """Connect, and refuse a server that would lose what it was given."""
        if self._checked:
            return
        await self.server.open()
        info = await self.server.info()
        saves = await self.server.setting("save")
        if not self._may_be_volatile and is_volatile(info, saves):
            raise refuse_volatile(self.server.url)
        self._checked = True

    async def close(self) -> None:
        """Let go of the server."""
        self._checked = False
        await self.server.close()

    async def add(self, events: Iterable[NewEvent], now: int) -> None:
        """Add events that passed the gate; they are on disk as far as the server has them there."""
        key = self.key(EVENTS)
        await self.ask_all([("XADD", key, "*", *fields_of(event, now)) for event in events])

    async def state(self) -> StreamState:
        """What waits: an entry is deleted once it is in the log."""
        await self.open()
        key = self.key(EVENTS)
        length, letters, first, pending, size = await self.server.replies(
            [
                ("XLEN", key),
                ("XLEN", self.key(LETTERS)),
                ("XRANGE", key, "-", "+", "COUNT", 1),
                ("XPENDING", key, GROUP),
                ("MEMORY", "USAGE", key),
            ]
        )
        unknown = isinstance(pending, ResponseError)  # nobody has ever read it
        return StreamState(
            length=int(length),
            unacknowledged=0 if unknown else int(pending[0]),
            oldest_at=entries_of(first)[0].milliseconds if first else None,
            letters=int(letters),
            size=size if isinstance(size, int) else 0,
        )

    async def erase(self, matches: Callable[[Mapping[str, str]], bool]) -> int:
        """Delete the entries of all streams whose fields match; how many they were.

        Their bytes stay in the append-only file until `rewrite`.
        """
        count = 0
        for name in (EVENTS, LETTERS, FEED):
            gone = await self._matching(name, matches)
            keys = [self.key(name), self.key(f"{name}:erasing")]
            for begin in range(0, len(gone), AT_ONCE):  # each time the stream is written anew
                count += int(await self.call("erase", keys, *gone[begin : begin + AT_ONCE]))
        return count

    async def _matching(self, name: str, matches: Callable[[Mapping[str, str]], bool]) -> list[str]:
        """The ids of a stream's entries whose fields match."""
        found: list[str] = []
        after = "-"
        while page := entries_of(
            await self.ask("XRANGE", self.key(name), after, "+", "COUNT", PAGE)
        ):
            found += [entry.id for entry in page if matches(_read(entry))]
            after = f"({page[-1].id}"
        return found

    async def rewrite(self) -> None:
        """Have the server write its append-only file anew, without what was deleted."""
        if (await self._info()).get("aof_enabled") != "1":
            return
        await self.ask("BGREWRITEAOF")
        async with asyncio.timeout(REWRITE_SECONDS):
            while await self._is_rewriting():  # noqa: ASYNC110 - only the server knows
                await asyncio.sleep(0.02)

    async def _is_rewriting(self) -> bool:
        info = await self._info()
        return "1" in (info.get("aof_rewrite_in_progress"), info.get("aof_rewrite_scheduled"))

    async def _info(self) -> Mapping[str, str]:
        await self.open()
        return await self.server.info()


def entries_of(answer: Any) -> list[Entry]:
    """The entries of an answer of the server."""
    return [Entry(each[0].decode(), each[1]) for each in answer or () if each is not None]


def _read(entry: Entry) -> dict[str, str]:
    given = iter(entry.fields or ())
    pairs = zip(given, given, strict=True)
    return {n.decode(errors="replace"): v.decode(errors="replace") for n, v in pairs}


async def check_stream(app: "Penstock") -> Check:
    """Say what the stream's server keeps on disk of events before they are sanitised."""
    stream: Stream | None = app.events.stream
    if stream is None:
        return Check(HealthStatus.HEALTHY, "none: events are appended to the log itself")
    try:
        state = await stream.state()
        info = await stream.server.info()
        fsync = await stream.server.setting("appendfsync")
    except StoreError as error:
        return Check(HealthStatus.UNHEALTHY, str(error))
    wait = "entry waits" if state.length == 1 else "entries wait"
    waiting = f"{state.length:,} {wait} in {stream.key(EVENTS)}"
    if info.get("aof_enabled") != "1":
        return Check(HealthStatus.HEALTHY, f"{waiting}; the server has no append-only file")
    held = "held what other programs added before it was sanitised, until it is next rewritten"
    size = int(info.get("aof_current_size", 0)) / 1e6
    told = f"{waiting}; its append-only file ({size:.1f} MB) {held} (BGREWRITEAOF does it now)"
    if fsync == "always":
        return Check(HealthStatus.HEALTHY, told)
    lost = f"appendfsync is {fsync or 'not told'}: a crash of its machine may lose the last second"
    return Check(HealthStatus.HEALTHY, f"{told}; {lost}")
