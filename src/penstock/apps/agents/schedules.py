"""The default schedules: what an agent platform does by the clock, unless somebody says otherwise.

They are declared by every worker that has the agent workers. One that an operator changed, by hand
or with `reschedule`, is left as it is, through restarts and deploys.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.app.blueprint import Blueprint
from penstock.app.declare import DeclaredSchedule, add_schedule
from penstock.app.schedules import put, template_job, times_of
from penstock.model.errors import InvalidOption
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.app.schedules import ScheduleView

DAY_MS = 86_400_000


class Default(Struct, frozen=True):
    """A schedule: its name, its cron line of six fields (seconds first, UTC), type and data."""

    name: str
    cron: str
    type: str
    data: dict[str, Any] = {}


DEFAULTS = (
    Default("session-cleanup", "0 */15 * * * *", "session-cleanup", {"maxAge": DAY_MS}),
    Default(
        "memory-importance-decay", "0 0 */6 * * *", "memory-importance-decay", {"decayFactor": 0.99}
    ),
    Default("index-optimization", "0 0 3 * * *", "index-optimization", {"threshold": 0.8}),
    Default(
        "pattern-training-daily",
        "0 0 4 * * *",
        "pattern-training",
        {"batchSize": 1000, "epochs": 5},
    ),
    Default("quota-check", "0 0 * * * *", "quota-check"),
)


class DefaultSchedule(DeclaredSchedule):
    """One that the settings may switch off, and that gives way to an operator's for good."""

    async def declare(self, app: "Penstock") -> None:
        """Put it into the store, unless somebody decided otherwise."""
        known = await app.store.schedules.get(self.name, "")
        if known is not None and known.by_operator:
            return
        if app.extensions.settings("agents").schedules:
            await super().declare(app)
        elif known is not None:
            await app.store.schedules.remove(self.name, "")


def declare_defaults(jobs: Blueprint) -> None:
    """Declare those whose types the blueprint has."""
    for default in DEFAULTS:
        type_ = jobs.types.get(default.type)
        if type_ is not None:
            times = {"cron": default.cron, "zone": "UTC"}
            made = DefaultSchedule(type_, default.name, default.data, times)
            add_schedule(made, None, jobs.declarations)


async def reschedule(
    app: "Penstock",
    name: str,
    cron: str,
    *,
    zone: str = "UTC",
    data: Mapping[str, Any] | None = None,
    actor: Actor = PROGRAM,
) -> "ScheduleView":
    """Give a default schedule other times, or other data, which stand through restarts."""
    defaults = {default.name: default for default in DEFAULTS}
    if name not in defaults:
        raise InvalidOption("schedule", name, f"one of: {', '.join(defaults)}")
    default = defaults[name]
    type_ = app.find_type(default.type)
    known = await app.store.schedules.get(name, "")
    before = default.data if known is None else decode(known.payload)
    payload = before if data is None else dict(data)
    type_.from_payload(encode(payload).decode(), type_.defaults)
    job = replace(template_job(type_, payload), created_by=actor.name)
    async with actor.doing("schedule.put", f"schedule:{name}", tenant_id="", type=type_.name):
        return await put(
            app.store, name, job, times_of({"cron": cron, "zone": zone}), by="operator"
        )
