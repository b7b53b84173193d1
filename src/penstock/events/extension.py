"""Events as one object; everything that takes time to load stands as a text."""

from msgspec import Struct

from penstock.extension import Body, Command, Extension, Route, Table, Tables

API = "penstock.events.api"
LIMIT = 1 << 20


class EventSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[penstock.events]` in TOML, or `PENSTOCK_EVENTS__GATE`.

    `gate` takes out of an event what must not be kept; `codec` is the best that is installed.
    """

    gate: str = "penstock.events.log:redacting"
    codec: str | None = None
    event_limit: int = LIMIT


TABLES = Tables(
    extension="events",
    package="penstock.events",
    tables=(
        Table("events_log", key=("event_id", "timestamp"), tenant="tenant_id", person="person"),
    ),
)

events = Extension(
    name="events",
    title="Events",
    needs="events",
    help="Append events to the log, and read them.",
    settings=EventSettings,
    tables=TABLES,
    namespace="penstock.events.log:Events",
    in_transaction="penstock.events.log:Writing",
    commands=(
        Command(name="ls", run="penstock.events.commands:ls"),
        Command(name="show", run="penstock.events.commands:show"),
        Command(name="append", run="penstock.events.commands:append", writes=True),
    ),
    routes=(
        Route(
            name="append_events",
            method="POST",
            path="events",
            run=f"{API}:append_events",
            scope="enqueue",
            body=Body.LINES,
            takes="penstock.events.event:NewEvent",
            gives=f"{API}:AppendedEvents",
            media="application/x-ndjson",
            limit=16 * LIMIT,
            status=201,
        ),
        Route(
            name="list_events",
            method="GET",
            path="events",
            run=f"{API}:list_events",
            query=f"{API}:Wanted",
            gives=f"{API}:EventList",
        ),
        Route(
            name="read_event",
            method="GET",
            path="events/{event_id}",
            run=f"{API}:read_event",
            gives="penstock.events.event:Event",
        ),
    ),
)
