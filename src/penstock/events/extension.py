"""Events as one object; everything that takes time to load stands as a text."""

from typing import Any

from msgspec import Struct

from penstock.events.rules import HEALTH, MEASURES, METRICS, RULES
from penstock.extension import (
    Body,
    Command,
    Extension,
    Measured,
    Metric,
    Page,
    Pass,
    Process,
    Route,
    Table,
    Tables,
)

LIMIT = 1 << 20
REQUEST_LIMIT = 16 << 20
API = "penstock.events.api"
ARCHIVE_API = "penstock.events.archive_api"
COMMANDS = "penstock.events.commands"
PAGES = "penstock.events.pages"


class PressureSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.events.pressure]`: when consumers are too far behind, in events and in seconds.

    A level is reached at its own figure and left below that of the one beneath it, if nobody was
    above for all of `window`; to red only the depth leads. Every `every` seconds it is checked.
    """

    green: int = 1_000
    yellow: int = 10_000
    orange: int = 50_000
    red: int = 100_000
    green_lag: float = 1
    yellow_lag: float = 5
    orange_lag: float = 30
    every: float = 5
    window: float = 60

    def __post_init__(self) -> None:
        if not 0 < self.green <= self.yellow <= self.orange <= self.red:
            raise ValueError("pressure takes 0 < green <= yellow <= orange <= red")
        if not 0 < self.green_lag <= self.yellow_lag <= self.orange_lag:
            raise ValueError("pressure takes 0 < green_lag <= yellow_lag <= orange_lag")
        if self.every <= 0 or self.window <= 0:
            raise ValueError("pressure takes every and window above 0")

    def depth(self, level: str) -> int:
        """The figure of a level in events."""
        figure: int = getattr(self, level)
        return figure

    def lag_ms(self, level: str) -> int:
        """The figure of a level in milliseconds; none leads to red."""
        seconds: float = getattr(self, f"{level}_lag")
        return round(1000 * seconds)


class EventSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[penstock.events]` in TOML, or `PENSTOCK_EVENTS__GATE`.

    `gate` takes out of an event what must not be kept, as `module:name`; without it, that of an
    extension does (the recorder's, where it is enabled), or our own. `codec` is the best that is
    installed; `event_limit` is the largest body in bytes; `types` are priorities of types of your
    own.

    `stream` is the URL of a Redis: events are appended to `telemetry:events` there, and ingest
    writes them into the log. With `mirror`, the log is mirrored to `cdc:events` there. `spool` is
    the file that takes events while that Redis is away: unless it is named, one beside the file of
    a SQLite store (`work.db.spool`), else one in `$XDG_STATE_HOME/penstock` or
    `~/.local/state/penstock`. Named without a stream, it does so while the store is away or locked.
    `archive` is the folder of archived events; whole months that are older than `archive_days` go
    there by themselves, if that is above 0. So do jobs that ended in such months, once they are
    older than `jobs_archive_days`: while that is above 0, nothing else deletes ended jobs.
    """

    gate: str = ""
    codec: str | None = None
    event_limit: int = LIMIT
    types: dict[str, Any] = {}
    pressure: PressureSettings = PressureSettings()
    stream: str | None = None
    mirror: bool = True
    spool: str | None = None
    archive: str = ""
    archive_days: int = 0
    jobs_archive_days: int = 0


TABLES = Tables(
    extension="events",
    package="penstock.events",
    tables=(
        Table(
            "events_log",
            key=("event_id", "timestamp", "tenant_id"),
            tenant="tenant_id",
            person="person",
            stays=True,
        ),
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
        Table("events_archives", key=("file",), files="of the archive (events.archive)"),
        Table("events_erasures", key=("id",)),
        Table("events_ingest", key=("name",)),
        Table("events_groups", key=("name",)),
        Table("events_readings", key=("consumer", "at")),
        Table("events_levels", key=("at",)),
        Table("events_series", key=("id",), tenant="tenant_id", person="person"),
        Table("events_samples", key=("id",), tenant="tenant_id", person="person"),
    ),
    functions=("events_make_month", "events_drop_month"),
)

ROUTES = (
    Route(
        name="append_events",
        method="POST",
        path="events",
        run=f"{API}:append_events",
        scope="enqueue",
        body=Body.MANY,
        takes="penstock.events.event:NewEvent",
        gives=f"{API}:AppendedList",
        limit=REQUEST_LIMIT,
    ),
    Route(
        name="list_events",
        method="GET",
        path="events",
        run=f"{API}:list_events",
        query=f"{API}:WantedEvents",
        gives=f"{API}:EventList",
    ),
    Route(
        name="get_event",
        method="GET",
        path="events/{event_id:path}",
        run=f"{API}:get_event",
        gives=f"{API}:EventDocument",
    ),
    Route(
        name="list_dead_events",
        method="GET",
        path="dead-events",
        run=f"{API}:list_dead_events",
        query=f"{API}:WantedLetters",
        gives=f"{API}:DeadEventList",
    ),
    Route(
        name="replay_dead_event",
        method="POST",
        path="dead-events/{letter_id}/replay",
        run=f"{API}:replay_dead_event",
        scope="operate",
        body=Body.JSON,
        takes=f"{API}:MaybeReplaying",
        gives=f"{API}:Replayed",
    ),
    Route(
        name="drop_dead_event",
        method="DELETE",
        path="dead-events/{letter_id}",
        run=f"{API}:drop_dead_event",
        scope="operate",
        gives=f"{API}:DeadEventDocument",
    ),
    Route(
        name="list_consumers",
        method="GET",
        path="consumers",
        run=f"{API}:list_consumers",
        gives=f"{API}:ConsumerList",
        whole=True,
    ),
    Route(
        name="pause_consumer",
        method="POST",
        path="consumers/{name}/pause",
        run=f"{API}:pause_consumer",
        scope="operate",
        gives="penstock.events.pipeline:ConsumerState",
        whole=True,
    ),
    Route(
        name="resume_consumer",
        method="POST",
        path="consumers/{name}/resume",
        run=f"{API}:resume_consumer",
        scope="operate",
        gives="penstock.events.pipeline:ConsumerState",
        whole=True,
    ),
    Route(
        name="rebuild_consumer",
        method="POST",
        path="consumers/{name}/rebuild",
        run=f"{API}:rebuild_consumer",
        scope="operate",
        body=Body.JSON,
        takes=f"{API}:MaybeRebuilding",
        gives=f"{ARCHIVE_API}:WorkDocument",
        whole=True,
    ),
    Route(
        name="read_rebuild",
        method="GET",
        path="consumers/{name}/rebuild",
        run=f"{API}:read_rebuild",
        gives=f"{ARCHIVE_API}:WorkDocument",
        whole=True,
    ),
    Route(
        name="query_events",
        method="POST",
        path="event-query",
        run=f"{ARCHIVE_API}:query_events",
        scope="operate",
        body=Body.JSON,
        takes=f"{ARCHIVE_API}:Asking",
        gives=f"{ARCHIVE_API}:AnswerDocument",
        whole=True,
    ),
    Route(
        name="archive_events",
        method="POST",
        path="event-archive",
        run=f"{ARCHIVE_API}:archive_events",
        scope="operate",
        body=Body.JSON,
        takes=f"{ARCHIVE_API}:MaybeArchiving",
        gives=f"{ARCHIVE_API}:WorkDocument",
        whole=True,
    ),
    Route(
        name="read_archive",
        method="GET",
        path="event-archive",
        run=f"{ARCHIVE_API}:read_archive",
        gives=f"{ARCHIVE_API}:ArchiveDocument",
        whole=True,
    ),
    Route(
        name="erase_session",
        method="POST",
        path="event-erasures",
        run=f"{ARCHIVE_API}:erase_session",
        scope="admin",
        body=Body.JSON,
        takes=f"{ARCHIVE_API}:ErasedSession",
        gives=f"{ARCHIVE_API}:ErasedDocument",
        whole=True,
    ),
    Route(
        name="read_pipeline",
        method="GET",
        path="pipeline",
        run=f"{API}:read_pipeline",
        gives=f"{API}:PipelineDocument",
        whole=True,
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
    names={
        "consumer": "penstock.events.consumer:Consumers",
        "series": "penstock.events.series:AllSeries",
    },
    in_transaction="penstock.events.log:Writing",
    on_remote="penstock.events.remote:RemoteEvents",
    erase="penstock.events.erase:erase_whose",
    keeps_jobs="jobs_archive_days",
    passes=(
        Pass(name="pressure", every=5.0, run="penstock.events.pressure:check"),
        Pass(name="mirror_series", every=5.0, run="penstock.events.series_mirror:mirror_series"),
        Pass(name="prune_series", every=600.0, run="penstock.events.series:prune"),
        Pass(name="recompress", every=60.0, run="penstock.events.recompress:recompress"),
        Pass(name="months", every=3_600.0, run="penstock.events.archive:make_months"),
        Pass(name="archive", every=3_600.0, run="penstock.events.archive:keep_up"),
        Pass(name="archive_jobs", every=3_600.0, run="penstock.events.job_archive:keep_up"),
    ),
    services=("penstock.events.series:Flushing",),
    doctor={"stream": "penstock.events.stream:check_stream", "archive": f"{HEALTH}:check_archive"},
    adds={"events.flush": ("penstock.events.series:flush",)},
    commands=(
        Command(name="ls", run=f"{COMMANDS}:ls"),
        Command(name="show", run=f"{COMMANDS}:show"),
        Command(name="append", run=f"{COMMANDS}:append", writes=True, loads=True),
        Command(name="tail", run=f"{COMMANDS}:tail"),
        Command(name="tap", run=f"{COMMANDS}:tap", loads=True),
        Command(name="stats", run=f"{COMMANDS}:stats"),
        Command(name="pause", run=f"{COMMANDS}:pause"),
        Command(name="resume", run=f"{COMMANDS}:resume"),
        Command(name="forget", run=f"{COMMANDS}:forget", loads=True),
        Command(name="rebuild", run=f"{COMMANDS}:rebuild", loads=True),
        Command(name="dead", run=f"{COMMANDS}:dead"),
        Command(name="replay", run=f"{COMMANDS}:replay", loads=True),
        Command(name="drop", run=f"{COMMANDS}:drop"),
        Command(name="archive", run="penstock.events.archive_commands:archive"),
        Command(name="archive-jobs", run="penstock.events.archive_commands:archive_jobs"),
        Command(name="query", run="penstock.events.archive_commands:query"),
        Command(name="erase", run="penstock.events.archive_commands:erase", loads=True),
    ),
    routes=ROUTES,
    templates="penstock.events",
    pages=(
        Page(
            path="events",
            title="Pipeline",
            template="pipeline.html",
            show=f"{PAGES}:show_pipeline",
            act=f"{PAGES}:steer",
            whole=True,
        ),
        Page(path="events/log", title="Events", template="log.html", show=f"{PAGES}:show_log"),
        Page(
            path="events/dead",
            title="Dead events",
            template="dead.html",
            show=f"{PAGES}:show_dead",
            count=f"{PAGES}:count_dead",
            bad=True,
        ),
        Page(path="events/dead/settle", act=f"{PAGES}:settle"),
    ),
    processes=(
        Process(
            name="ingest",
            run="penstock.events.ingest:ingest",
            wanted="penstock.events.ingest:is_wanted",
            help="Write events that wait in a stream or a spool into the log, until SIGTERM.",
            panel="Run jobs",
        ),
        Process(
            name="consume",
            run="penstock.events.pool:consume",
            takes="CONSUMER",
            wanted="penstock.events.pool:has_consumers",
            help="Run the consumers of events until SIGTERM or Ctrl-C; they finish their batches.",
            panel="Run jobs",
        ),
    ),
    checks={
        name: f"{HEALTH}:check_{name}"
        for name in ("pressure", "consumers", "ingest", "consistency")
    },
    readings=tuple(
        Measured(name=f"events_{name}", measure=measure, read=f"{HEALTH}:{name}", page="events")
        for name, measure in MEASURES.items()
    ),
    rules=RULES,
    metrics=tuple(
        Metric(name=name, help=help_, read=f"{HEALTH}:{read}", labels=labels, counts=counts)
        for name, help_, read, labels, counts in METRICS
    ),
)
