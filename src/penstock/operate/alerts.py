"""The alerts of an installation, and telling people of them by jobs that survive a crash."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.app.job_type import JobType
from penstock.app.options import with_options
from penstock.config import fill_in
from penstock.model.alert import Alert, AlertState, acknowledged, paid
from penstock.model.errors import AlertNotFiring, AlertNotFound, InvalidOption, MissingExtra
from penstock.model.ids import new_id
from penstock.model.job import KeyScope, NewJob
from penstock.model.redact import redact, redacted
from penstock.operate.actor import PROGRAM, Actor
from penstock.store.contract.records import every

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.alert import Alert
    from penstock.store.contract import Record

TYPE = "penstock.alert"
QUEUE = "penstock"
CALL = with_options(
    NewJob(id="", type=TYPE),
    queue=QUEUE,
    priority=1,
    max_retries=10,
    retry_delay=5,
    backoff=2,
    timeout=60,
    key_scope=KeyScope.WINDOW,
    key_window=7 * 86_400,
    category="alerts",
    created_by="alerts",
)
"""A service that is away is tried for about three quarters of an hour."""


class NotDelivered(ConnectionError):
    """A service that did not take a notice; its own words, without secrets."""


async def hand_over(app: "Penstock", alert: "Alert") -> None:
    """Enqueue a job per destination for all that an alert owes; one that is there stays alone."""
    if alert.route is None:
        return
    destinations = range(len(app.settings.alerts.urls(alert.route)))
    jobs = [
        _job(
            f"{notice.key}:{alert.route}:{number}",
            # In line, as nobody should hear that it is over before they hear of it.
            f"{alert.name}:{alert.route}:{number}",
            {
                "route": alert.route,
                "number": number,
                "title": notice.title,
                "body": notice.body,
                "kind": _kind(alert, notice.state),
            },
        )
        for notice in alert.owed
        for number in destinations
    ]
    if jobs:
        # Past the queue's limit: a full queue is what the notice may be about.
        await app.admission.enqueue(jobs, {"force": True})


def notice_types(app: "Penstock") -> dict[str, JobType[..., ..., Any]]:
    """What a worker runs beside the application's own types: none while no route is named."""
    if not app.settings.alerts.routes:
        return {}

    def tell(route: str, number: int, title: str, body: str, kind: str) -> None:
        deliver(app, route, number, title, body, kind)

    made: JobType[..., ..., Any] = JobType(
        app,
        tell,
        name=TYPE,
        aliases=(),
        options=CALL,
        run_in="thread",
        lease=None,
        classify=(),
        budgets={},
        retry_cap=600,
    )
    return {TYPE: made}


def deliver(
    app: "Penstock", route: str, number: int, title: str, body: str, kind: str = "info"
) -> None:
    """Send one notice to one destination now, or raise why not."""
    urls = app.settings.alerts.urls(route)
    if number >= len(urls):
        raise InvalidOption("route", f"{route}[{number}]", "one of this installation's settings")
    try:
        import apprise
    except ImportError as error:
        raise MissingExtra("server", "apprise") from error
    url, secrets = fill_in(urls[number])
    sender = apprise.Apprise()
    if not sender.add(url):
        raise InvalidOption("route", route, "made of URLs that apprise knows")
    capture: Any = apprise.LogCapture  # which has no types
    with capture(level=logging.WARNING) as said:
        sent = sender.notify(title=title, body=body, notify_type=kind)
        words = said.getvalue()
    if not sent:
        raise NotDelivered(_told(route, words, [*secrets, url]))


def _told(route: str, words: str, secrets: list[str]) -> str:
    for secret in secrets:
        if secret:
            words = words.replace(secret, "***")
    said = redact(" ".join(words.split()))[:300]
    return f"Route {route!r} did not take the notice: {said or 'its service does not answer'}"


def _job(key: str, line: str, payload: dict[str, Any]) -> NewJob:
    call = with_options(CALL, key=key, order_key=line)
    return replace(call, id=new_id(), payload=encode(payload).decode())


def _kind(alert: "Alert", state: AlertState) -> str:
    """The kind of a notice in apprise's words."""
    if state is AlertState.RESOLVED:
        return "success"
    return "failure" if alert.severity == "critical" else "warning"


KIND = "alert"
NOTE_LIMIT = 1_000

Change = Callable[[Alert], Alert]


class Alerts:
    """Which alerts stand, and which did: `await Alerts(app).list()`."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor
        self._records = app.store.records
        self.clock = app.store.clock

    async def list(self) -> list[Alert]:
        """All that ever stirred: firing, then pending, then over; the latest to change first."""
        found = [_opened(record) async for record in every(self._records, KIND)]
        kept = [alert for alert in found if alert.history]
        return sorted(
            kept,
            key=lambda a: (a.state is not AlertState.FIRING, not a.stands, -a.history[-1].at),
        )

    async def get(self, name: str) -> Alert:
        """One alert, or AlertNotFound."""
        record = await self._records.get(KIND, name)
        if record is None:
            raise AlertNotFound(name)
        return _opened(record)

    async def change(self, name: str, rule: str, change: Change) -> Alert:
        """Change an alert as if nobody else did meanwhile, then hand over what it owes.

        What is owed is written down with the decision, and paid afterwards: whoever dies in
        between leaves it to the next look at the alert, and its key keeps it from being told twice.
        """
        while True:
            record = await self._records.get(KIND, name)
            before = Alert(name=name, rule=rule) if record is None else _opened(record)
            after = change(before)
            if after == before or await self._put(after, 0 if record is None else record.revision):
                return await self._settled(after)

    async def acknowledge(self, name: str, note: str | None = None) -> Alert:
        """Say that the actor knows of a firing alert, and what they found."""
        found = await self.get(name)
        kept = redacted(note, NOTE_LIMIT)

        def noted(alert: Alert) -> Alert:
            if alert.state is not AlertState.FIRING:
                raise AlertNotFiring(name, alert.state)
            return acknowledged(alert, self._actor.name, kept, self.clock.now())

        details = {"state": found.state, "severity": found.severity}
        hashed = await self._actor.hashed(note)
        async with self._actor.doing(
            "alert.acknowledge", f"alert:{name}", **details, note_hash=hashed
        ):
            return await self.change(name, found.rule, noted)

    async def _settled(self, alert: Alert) -> Alert:
        if not alert.owed:
            return alert
        await hand_over(self._app, alert)
        owed = alert.owed
        return await self.change(
            alert.name, alert.rule, lambda now: paid(now) if now.owed == owed else now
        )

    async def _put(self, alert: Alert, revision: int) -> bool:
        document = encode(alert).decode()
        return await self._records.put(KIND, alert.name, document, revision=revision) is not None


def _opened(record: "Record") -> Alert:
    try:
        return decode(record.document, type=Alert)
    except MsgspecError:
        # Of a newer version, or edited by hand: it begins afresh rather than stop all others.
        return Alert(name=record.name, rule=record.name.partition(":")[0])
