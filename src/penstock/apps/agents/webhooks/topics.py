"""Topics: what happens to jobs and events, and whatever a program publishes, becomes webhooks.

A webhook subscribes to a topic (`job.completed`), to all below one (`job.*`), or to all (`*`). What
is published to a topic is enqueued once for each webhook of the tenant that subscribes to it, in
the commit that publishes it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from penstock.app.job_type import Prepared
from penstock.app.options import CallFields
from penstock.apps.agents.webhooks.jobs import LONGEST_TOPIC
from penstock.apps.agents.worker import enqueue_admitted, prepared
from penstock.events.consumer import Consumer
from penstock.events.event import Event
from penstock.model.clock import iso
from penstock.model.errors import InvalidOption, NotAdmitted
from penstock.model.ids import derived_id

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import JobChange

DISPATCH = "webhook-dispatch"
TEST = "webhook.test"
DISABLED = "webhook.disabled"
JOB = "job"
EVENT = "event"
OWN_TYPES = frozenset({DISPATCH, "penstock.alert"})
"""Nobody is told of these by a webhook, or each would be followed by another."""
DAY_SECONDS = 86_400.0
LONGEST_PAYLOAD = 65_536
"""Of an event with a longer payload only what it is known by is told."""

_TOPIC = re.compile(r"\*|[\w-]+(?:[.:/][\w-]+)*(?:\.\*)?", re.ASCII)


class Subscriber(Struct, frozen=True):
    """A webhook that is told of something."""

    id: str
    is_ordered: bool


class Message(Struct, frozen=True, kw_only=True):
    """Something to tell; `narrow` is a topic that says more, such as the type of a job.

    `seed` makes the ids of its deliveries, so that one which is published again is there once;
    with `key` it is enqueued once within a day.
    """

    topic: str
    tenant_id: str
    at: int
    data: Mapping[str, Any]
    narrow: str | None = None
    seed: tuple[str, ...] | None = None
    key: str | None = None
    person: str | None = None
    """Whom it is about: it goes when that person is erased."""

    @property
    def body(self) -> dict[str, Any]:
        """What receivers get, in the form of Standard Webhooks."""
        return {"type": self.topic, "timestamp": iso(self.at), "data": self.data}


def check_topic(topic: str, *, pattern: bool = False) -> str:
    """Return a topic, or a pattern of topics; InvalidOption if it is none."""
    is_pattern = topic.endswith("*")
    if len(topic) > LONGEST_TOPIC or not _TOPIC.fullmatch(topic) or (is_pattern and not pattern):
        expected = "words with dots between them, such as order.paid"
        more = ", order.* for all below one, or * for all" if pattern else ""
        raise InvalidOption("topic", topic, expected + more)
    return topic


def patterns_of(message: Message) -> list[str]:
    """Return every topic by which a subscription may mean a message."""
    words = message.topic.split(".")
    above = [".".join((*words[:n], "*")) for n in range(1, len(words))]
    narrow = [message.narrow] if message.narrow else []
    return [message.topic, f"{message.topic}.*", *narrow, *above, "*"]


class Publishing:
    """What is published in one transaction; subscribers are looked up once for each topic."""

    def __init__(self, app: "Penstock", tx: Any) -> None:
        self._app = app
        self._tx = tx
        self._known: dict[tuple[str, str], list[Subscriber]] = {}

    def calls(self, message: Message) -> "list[Prepared[Any]]":
        """Return a delivery for each webhook that subscribes, to be enqueued."""
        found: dict[str, Subscriber] = {}
        for pattern in patterns_of(message):
            for subscriber in self._subscribers(message.tenant_id, pattern):
                found.setdefault(subscriber.id, subscriber)
        told: dict[str, Any] = {"payload": message.body, "topic": message.topic}
        if message.person is not None:
            told["person"] = message.person
        calls: list[Prepared[Any]] = []
        for each, subscriber in found.items():
            key = None if message.key is None else f"{message.topic} {message.key} {each}"
            call = delivery(self._app, message.tenant_id, subscriber, told, key)
            if message.seed is not None:
                job = replace(call.job, id=derived_id(message.at, *message.seed, each))
                call = Prepared(call.type, job)
            calls.append(call)
        return calls

    def publish(self, message: Message) -> list[Any]:
        """Enqueue them in this transaction; a handle for each."""
        calls = self.calls(message)
        return self._tx.enqueue_many(calls) if calls else []

    def tell(self, message: Message) -> None:
        """The same for what follows from something else, which stands whoever is told."""
        for call in self.calls(message):
            enqueue_admitted(self._tx, call)

    def _subscribers(self, tenant: str, pattern: str) -> list[Subscriber]:
        key = (tenant, pattern)
        if key not in self._known:
            rows = self._tx.agents.rows("webhook_subscribers", key)
            self._known[key] = [Subscriber(row[0], bool(row[1])) for row in rows]
        return self._known[key]


def delivery(
    app: "Penstock",
    tenant: str,
    to: Subscriber,
    data: Mapping[str, Any],
    key: str | None = None,
) -> "Prepared[Any]":
    """Return the job that delivers something; those of an ordered webhook stand in line."""
    options: CallFields = {"tenant": tenant}
    if data.get("person"):
        options["created_by"] = data["person"]
    if to.is_ordered:
        options["order_key"] = f"webhook:{to.id}"
    if key is not None:
        options["key"], options["key_window"] = key, DAY_SECONDS
    return prepared(app.find_type(DISPATCH), {"webhookId": to.id, **data}, options)


async def tell_of_jobs(app: "Penstock", changes: "Sequence[JobChange]") -> None:
    """Publish what became of jobs, as `job.completed` and so on."""
    told = [change for change in changes if change.type not in OWN_TYPES]
    if not told or not await app.read(
        lambda tx: tx.agents.value("webhook_any_subscriber", (f"{JOB}.%",))
    ):
        return

    def work(tx: Any) -> None:
        publishing = Publishing(app, tx)
        calls = [call for change in told for call in publishing.calls(_of_job(change))]
        if not calls:
            return
        try:
            tx.enqueue_many(calls)
        except NotAdmitted:
            for call in calls:
                enqueue_admitted(tx, call)

    await app.transact(work)


def _of_job(change: "JobChange") -> Message:
    topic = f"{JOB}.{change.status}"
    return Message(
        topic=topic,
        narrow=f"{topic}.{change.type}",
        tenant_id=change.tenant_id,
        at=change.at,
        data={
            "id": change.job_id,
            "type": change.type,
            "queue": change.queue,
            "status": str(change.status),
        },
        seed=("webhook", change.job_id, str(change.fence), change.status),
    )


def make_consumer(app: "Penstock") -> Consumer | None:
    """Return the consumer that publishes events, as `event.tool_use` and so on, if it is on."""
    if not app.extensions.settings("agents").webhooks.events:
        return None

    def apply(tx: Any, events: Sequence[Event]) -> None:
        publishing = Publishing(app, tx)
        for event in events:
            for call in publishing.calls(_of_event(event)):
                enqueue_admitted(tx, call, event=event)

    return Consumer(name="agents.webhooks", apply=apply, reset=_nothing)


def _nothing(tx: Any, session: Any) -> None:
    """Derive nothing that could be thrown away: what was sent is sent."""


def _of_event(event: Event) -> Message:
    data: dict[str, Any] = {
        "id": event.event_id,
        "type": event.event_type,
        "sessionId": event.session_id,
        "platform": event.platform,
        "sequence": event.sequence,
    }
    if len(msgspec.json.encode(event.payload)) <= LONGEST_PAYLOAD:
        data["payload"] = event.payload
    return Message(
        topic=f"{EVENT}.{event.event_type}",
        tenant_id=event.tenant_id,
        at=event.timestamp,
        data=data,
        person=event.person,
    )
