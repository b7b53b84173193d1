"""Telling people of alerts over routes, by jobs that survive a crash."""

import logging
from typing import TYPE_CHECKING, Any

from msgspec.json import encode
from msgspec.structs import replace

from penstock.app.job_type import JobType
from penstock.app.options import with_options
from penstock.config import fill_in
from penstock.model.alert import Alert, AlertState
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.model.ids import new_id
from penstock.model.job import KeyScope, NewJob
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.alert import Alert

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
