"""A schedule: which job is enqueued again and again, when, and what to do about missed times."""

from enum import StrEnum

from msgspec import Struct


class ScheduleKind(StrEnum):
    """How a schedule tells its times."""

    CRON = "cron"
    INTERVAL = "interval"
    ONCE = "once"


class Misfire(StrEnum):
    """What to do about times that passed while nobody was there to act on them."""

    SKIP = "skip"
    ONE = "one"
    ALL = "all"


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as the store keeps it; times are UTC milliseconds, documents are JSON text.

    `payload` is a template and `options` the fields of the `NewJob` to enqueue. `revision` grows
    with every change, so that two processes never act on the same state of it.
    """

    id: str
    name: str
    type: str
    kind: ScheduleKind
    tenant_id: str = ""
    payload: str = "{}"
    options: str = "{}"
    expression: str | None = None
    interval_ms: int | None = None
    zone: str = "UTC"
    misfire: Misfire = Misfire.ONE
    enabled: bool = True
    starts_at: int | None = None
    ends_at: int | None = None
    expires_at: int | None = None
    max_runs: int | None = None
    run_count: int = 0
    last_run_at: int | None = None
    next_run_at: int | None = None
    by_operator: bool = False
    created_by: str | None = None
    metadata: str | None = None
    created_at: int = 0
    updated_at: int = 0
    revision: int = 0
