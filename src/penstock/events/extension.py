"""Events as one object; everything that takes time to load stands as a text."""

from typing import Any

from msgspec import Struct

from penstock.extension import Extension, Table, Tables

LIMIT = 1 << 20


class EventSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[penstock.events]` in TOML, or `PENSTOCK_EVENTS__GATE`.

    `gate` takes out of an event what must not be kept; `codec` is the best that is installed;
    `event_limit` is the largest body in bytes; `types` are priorities of types of your own.
    """

    gate: str = "penstock.events.gate:redacting"
    codec: str | None = None
    event_limit: int = LIMIT
    types: dict[str, Any] = {}


TABLES = Tables(
    extension="events",
    package="penstock.events",
    tables=(
        Table("events_log", key=("event_id", "timestamp"), tenant="tenant_id", person="person"),
        Table("events_dictionaries", key=("id",)),
        Table("events_cursors", key=("consumer", "slot")),
        Table("events_members", key=("consumer", "member")),
        Table("events_consumers", key=("name",)),
        Table(
            "events_marks",
            key=("consumer", "tenant_id", "platform", "session_id"),
            tenant="tenant_id",
        ),
        Table("events_dead", key=("id",), tenant="tenant_id", person="person"),
        Table("events_jobs", key=("consumer", "sequence", "n")),
        Table("events_ingest", key=("name",)),
        Table("events_groups", key=("name",)),
    ),
)

events = Extension(
    name="events",
    title="Events",
    needs="events",
    help="Append events to the log, read them, and see what consumers make of them.",
    settings=EventSettings,
    tables=TABLES,
    namespace="penstock.events.log:Events",
    names={"consumer": "penstock.events.consumer:Consumers"},
    in_transaction="penstock.events.log:Writing",
)
