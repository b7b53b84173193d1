"""What an application brings: one object, found by name, and the core is not edited for it.

Everything in it is data. The server mounts routes and pages, the command line its commands, the
worker its job types, the leader its passes: an extension imports none of them. Whatever is heavy
to load stands as a text, `"module:name"`, and is loaded when it is first used.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from penstock.model.alert import Reading
from penstock.model.alert_rules import Measure, Rule, Severity, Unit
from penstock.model.errors import InvalidOption
from penstock.model.job import Job, JobChange, NewJob
from penstock.model.states import TERMINAL, Status
from penstock.store.contract.tables import Queries, Table, Tables

if TYPE_CHECKING:
    from penstock.app.blueprint import Blueprint
    from penstock.app.penstock import Penstock
    from penstock.operate.health import Check
    from penstock.service import Service

__all__ = [
    "Again",
    "Asking",
    "Body",
    "Command",
    "Concern",
    "Counter",
    "Erasing",
    "Extension",
    "Follower",
    "Gate",
    "Group",
    "JobChange",
    "Measure",
    "Measured",
    "Metric",
    "NotKnownYet",
    "Page",
    "Pass",
    "Process",
    "Queries",
    "Reading",
    "Request",
    "Route",
    "Rule",
    "Severity",
    "Shown",
    "Table",
    "Tables",
    "Tile",
    "Unit",
    "Way",
    "asking",
    "load",
]

NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
WORD = "a word of a-z, 0-9 and _ that begins with a-z"

Loaded = str | Callable[..., Any]
"""Something to call, or the `module:name` where it is found."""


def load(what: Any) -> Any:
    """What a `module:name` stands for; anything else is itself."""
    if not isinstance(what, str):
        return what
    module, _, name = what.partition(":")
    return getattr(import_module(module), name)


class Again(Struct, frozen=True):
    """What a pass returns that is to run next sooner, or later, than usual."""

    seconds: float


class Pass(Struct, frozen=True, kw_only=True):
    """Something the leader does again and again: `await run(app)`, every so many seconds.

    If it returns `Again(5)`, it runs next after 5 seconds instead.
    """

    name: str
    every: float
    run: Loaded


class Follower(Struct, frozen=True, kw_only=True):
    """Hears what becomes of jobs: `await tell(app, changes)`, a list of `JobChange`.

    A change is recorded in the commit that changes the job. The leader tells it soon after, those
    of one job in their order, and at least once: if `tell` raises, it is told the same again.
    `statuses` are those of which it is told, by default those in which a job has ended. Where
    `wanted(app)` says no, it follows nothing, and that costs nothing.
    """

    name: str
    tell: Loaded
    statuses: tuple[str, ...] = tuple(sorted(TERMINAL))
    every: float = 1.0
    wanted: Loaded | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidOption("name", self.name, WORD)
        if not self.statuses or not {*self.statuses} <= {*Status}:
            raise InvalidOption("statuses", self.statuses, f"some of: {', '.join(Status)}")


class Command(Struct, frozen=True, kw_only=True):
    """A command of the group `penstock NAME`: `async def run(app, …)`; options are its parameters.

    A parameter without a default is an argument, and `*words` are as many as are given. A text in
    `Annotated[str, "Where it grows."]` is its help, and one that begins with `-` its name. A
    parameter `actor` is who types, and `progress(what, done, of_how_many)` shows a bar.

    What it returns is printed: a list as a table, a record line by line, a text as it is, and all
    of it as JSON with `--json`, or `Shown`. What a generator yields is printed as it comes, as
    JSON one document a line. Its docstring is its help. `writes` makes the store it was given; one
    that does not open it works without. One that `loads` is given the application of `--app`.
    """

    name: str
    run: Loaded
    writes: bool = False
    opens: bool = True
    loads: bool = False


class Group(Struct, frozen=True, kw_only=True):
    """Commands of another group than that of the extension: `penstock NAME …`."""

    name: str
    help: str
    commands: tuple[Command, ...]


class Process(Struct, frozen=True, kw_only=True):
    """Something that runs in processes of its own: `penstock NAME [MODULE:APP] --processes 2`.

    `await run(app)` goes on until it is cancelled, and then finishes what it has begun. `takes` is
    what further words on the command line stand for: with it, `await run(app, words)` is given
    them. `penstock up` runs it, too, where `wanted(app)` says so. A process that dies is replaced.
    """

    name: str
    run: Loaded
    help: str
    takes: str = ""
    wanted: Loaded | None = None
    panel: str = "Extensions"


class Shown(Struct, frozen=True):
    """What a command shows people, where `--json` writes something else.

    `people` is what a command may return, or a tuple of such parts. `failed` is a sentence for
    standard error; the exit code is then 1.
    """

    people: Any
    document: Any
    failed: str = ""


class Body(StrEnum):
    """How the body of a request reaches its route."""

    NONE = "none"
    JSON = "json"
    """Decoded into the route's `takes`."""
    LINES = "lines"
    """One JSON document per line (NDJSON), each decoded into `takes`."""
    MANY = "many"
    """One JSON document, a list of them, or one per line (NDJSON); they come as a list."""
    RAW = "raw"
    """Bytes as they came, such as OTLP; `media` says of which type, or types: `a/b, a/c`."""


class Request(Struct, frozen=True, kw_only=True):
    """What a route or page is given: who asks, and for what.

    `tenant` binds the caller to one tenant; None sees all of them. `query` is a record of the
    route's own `query`, or a page's parameters by name. `body` is as the route says: a record, a
    list of records, or bytes. `headers` are without those that carry credentials.
    """

    app: "Penstock"
    actor: str
    tenant: str | None
    path: Mapping[str, str]
    query: Any
    body: Any = None
    form: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}


class Route(Struct, frozen=True, kw_only=True):
    """An address of the API: `await run(request)` answers with a record, a list or a document.

    It may also answer with a text, bytes or pieces of them, as the type that `answers` says.

    `path` stands below `/api/`. `whole` refuses callers that are bound to a tenant. `limit` bounds
    the body in bytes, and `media` is its type. `query` is a record of the parameters; without one
    it takes none. `takes` and `gives` are the types of body and answer in the API's document, where
    `name` is what the operation is called, and the docstring of `run` says what it does. Types may
    stand as `module:name`, too.
    """

    method: str
    path: str
    run: Loaded
    scope: str = "read"
    whole: bool = False
    body: Body = Body.NONE
    takes: Any = None
    gives: Any = None
    query: type[Struct] | str | None = None
    media: str = "application/json"
    answers: str = "application/json"
    name: str = ""
    limit: int = 1 << 20
    status: int = 200


class Page(Struct, frozen=True, kw_only=True):
    """A page of the dashboard: `await show(request)` gives what its template needs.

    `title` puts it into the navigation, in the extension's group, with `count(app)` beside it; the
    count of a `bad` one stands out. `act(request)` takes its form and answers with a sentence; the
    browser is then sent back to the page it came from. One without `show` only acts.
    """

    path: str
    template: str = ""
    show: Loaded | None = None
    title: str = ""
    act: Loaded | None = None
    scope: str = "read"
    acts: str = "operate"
    whole: bool = False
    count: Loaded | None = None
    bad: bool = False


class Tile(Struct, frozen=True, kw_only=True):
    """A figure on the overview: `await figure(app)`, and the page behind it."""

    title: str
    figure: Loaded
    path: str = ""


class Metric(Struct, frozen=True, kw_only=True):
    """A family for Prometheus, `penstock_NAME_` and its own name: `await read(app)` is its figure.

    That is a number, or one for each set of labels: `{("north", "mail"): 3}`.
    """

    name: str
    help: str
    read: Loaded
    labels: tuple[str, ...] = ()
    counts: bool = False


class Measured(Struct, frozen=True, kw_only=True):
    """A reading that rules of alerts may name as their metric: `await read(app, rule)`."""

    name: str
    measure: Measure
    read: Callable[["Penstock", Rule], Awaitable[Reading]] | str
    page: str = ""


class Way(StrEnum):
    """How a job comes in."""

    ENQUEUE = "enqueue"
    CHILD = "child"
    SCHEDULE = "schedule"
    REQUEUE = "requeue"


class Asking(Struct, frozen=True, kw_only=True):
    """A job that wants in, as a gate sees it."""

    way: Way
    type: str
    queue: str
    tenant_id: str = ""
    workspace_id: str | None = None
    created_by: str | None = None
    payload: str = "{}"


class Concern(Struct, frozen=True):
    """One thing that is not as it should be: how grave, what, and where to look.

    `about` is the page whose figures it speaks of: what a check or another concern says of that
    page is left out.
    """

    status: str
    title: str
    text: str
    path: str = ""
    since_at: int | None = None
    about: str = ""


def asking(job: NewJob | Job, way: Way) -> Asking:
    """What a gate is told of a job."""
    return Asking(
        way=way,
        type=job.type,
        queue=job.queue,
        tenant_id=job.tenant_id,
        workspace_id=job.workspace_id,
        created_by=job.created_by,
        payload=job.payload,
    )


Gate = Callable[["Penstock", Asking], str | None]
"""Says why a job may not come in, in a sentence; None lets it in. It may be asked again."""


class NotKnownYet(BaseException):
    """Raised by a gate or a counter that has to look first: `await look()`, and it is asked again.

    It passes every `except Exception` of the work that asks.
    """

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self.look = look


class Counter(Protocol):
    """Counts the jobs that come in, all those of a call together; it has one for each application.

    It is called from any thread, and awaits nothing.
    """

    def take(self, jobs: Sequence[NewJob], way: Way) -> str | None:
        """Count jobs that are about to come in, or say in a sentence why none of them may."""
        ...

    def give_back(self, jobs: Sequence[NewJob]) -> None:
        """Uncount jobs that did not come in after all."""
        ...

    def refusal(self, job: NewJob | Job) -> str | None:
        """Say why a job that was counted when it came may not run again; None lets it."""
        ...

    async def close(self) -> None:
        """Write down what was counted; the store is closed next."""
        ...


class Erasing(Struct, frozen=True, kw_only=True):
    """Whose traces are to go: those of a tenant, of a person, or of a person within a tenant."""

    tenant: str | None = None
    person: str | None = None


class Extension(Struct, frozen=True, kw_only=True):
    """One application's share of everything.

    `name` begins the names of its tables, is its TOML table and its environment's prefix, its
    group of commands and its namespace on `app`. `needs` names the extra of the wheel without
    which `namespace`, routes and commands cannot be loaded.

    `alone` are commands that stand beside its group: `penstock NAME`.

    `panel` is where `penstock --help` lists its group. `home(makes)` is the URL of the store that
    its commands use where nobody names one; for one that `writes`, it makes the place for it.

    An installed one is enabled by its name in `extensions`, by its namespace, or `always`.

    `namespace(app)` becomes `app.NAME`, `in_transaction(queries, app, tx)` becomes `tx.NAME`, and
    `on_remote(remote)` becomes `remote.NAME`; `names` are further ones on `app`. What has an
    `async def close()` is closed with the application. `adds` is what it brings to other
    extensions, by the words that those document.

    `redact` is asked for every text that is kept, after
    our own rules. `concerns(app)` lists what is wrong. `erase(app, erasing)`
    removes what is not in its tables, or in those that `stay`, and says how much it was.

    `counter(app)` is a `Counter`: told of jobs that come in, when every gate has let them.

    `keeps_jobs` names a setting of it: while that is above 0, ended jobs are not pruned, and it
    deletes them itself, once it has them elsewhere.
    """

    name: str
    title: str = ""
    always: bool = False
    needs: str | None = None
    blueprint: "Blueprint | str | None" = None
    settings: type[Struct] | None = None
    tables: Tables | None = None
    passes: tuple[Pass, ...] = ()
    followers: tuple[Follower, ...] = ()
    services: tuple["Callable[[Penstock], Service] | str", ...] = ()
    processes: tuple[Process, ...] = ()
    commands: tuple[Command, ...] = ()
    groups: tuple[Group, ...] = ()
    alone: tuple[Command, ...] = ()
    help: str = ""
    panel: str = "Extensions"
    home: Loaded | None = None
    routes: tuple[Route, ...] = ()
    pages: tuple[Page, ...] = ()
    templates: str | None = None
    tiles: tuple[Tile, ...] = ()
    concerns: Loaded | None = None
    metrics: tuple[Metric, ...] = ()
    readings: tuple[Measured, ...] = ()
    rules: tuple[Rule, ...] = ()
    checks: "Mapping[str, Callable[[Penstock], Awaitable[Check]] | str]" = {}
    doctor: "Mapping[str, Callable[[Penstock], Awaitable[Check]] | str]" = {}
    gates: tuple[Gate, ...] = ()
    counter: Loaded | None = None
    redact: Loaded | None = None
    erase: Loaded | None = None
    keeps_jobs: str = ""
    namespace: Loaded | None = None
    in_transaction: Loaded | None = None
    names: Mapping[str, Loaded] = {}
    adds: Mapping[str, Any] = {}
    on_remote: Loaded | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidOption("name", self.name, WORD)
        if self.tables is not None and self.tables.extension != self.name:
            raise InvalidOption("tables", self.tables.extension, f"those of {self.name!r}")
        for table in self.tables.tables if self.tables else ():
            if not table.name.startswith(f"{self.name}_"):
                raise InvalidOption("table", table.name, f"a name that begins with {self.name}_")
        names = [follower.name for follower in self.followers]
        for name in names:
            if names.count(name) > 1:
                raise InvalidOption("follower", name, "a name that no other follower of it has")
