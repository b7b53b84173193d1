"""A consumer derives something from events: each has one effect, in the order of its session.

@app.consumer(name="totals", types=["tool_use"])
class Totals:
    def apply(self, tx, events): ...
    def reset(self, tx, session): ...
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.events.columns import SLOTS
from penstock.events.event import Event, Session
from penstock.extension import load
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.app.transact import Unit
    from penstock.events.enrichment import Breaker
    from penstock.events.series import Recording

NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
TRIES = 3
BATCH = 100
TIMEOUT = 30.0


class Role(StrEnum):
    """What becomes of a consumer under pressure: workers go to the vital, optional ones rest."""

    VITAL = "vital"
    NORMAL = "normal"
    OPTIONAL = "optional"


class Failing(StrEnum):
    """What becomes of a session after an event of it was given up."""

    GO_ON = "go on"
    """What follows is applied; the session is marked as incomplete."""
    WAIT = "wait"
    """What follows waits until the event is replayed."""


class UnknownConsumer(NotFound):
    """A name that no consumer of this application has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(f"There is no consumer {name!r} here; known: {listed}.")


class CannotRebuild(InvalidOption):
    """A consumer that does not say how what it derived is thrown away."""

    def __init__(self, name: str) -> None:
        super().__init__("consumer", name, "one with a reset(tx, session)")
        self.name = name
        told = "it has no reset(tx, session) that removes what it derived from a session"
        self.args = (f"Consumer {name!r} cannot be rebuilt: {told}.",)


class Consumer(Struct, frozen=True, kw_only=True):
    """What is done with events, and by how many workers."""

    name: str
    apply: Callable[[Any, Any], None]
    prepare: Callable[[Sequence[Event]], Any] | None = None
    reset: Callable[[Any, Session], None] | None = None
    digest: Callable[[Any, Session], Any] | None = None
    """What it derived from a session, to be compared with what a replay derives."""
    types: frozenset[str] | None = None
    partitions: int = 8
    role: Role = Role.NORMAL
    workers: int = 1
    minimum: int = 1
    maximum: int = 8
    batch: int = BATCH
    timeout: float = TIMEOUT
    tries: int = TRIES
    failing: Failing = Failing.GO_ON

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name == "ingest":
            raise InvalidOption("name", self.name, "a word of a-z, 0-9, _, . and -, not 'ingest'")
        if not 1 <= self.partitions <= SLOTS:
            raise InvalidOption("partitions", self.partitions, f"1 to {SLOTS}")
        if not 1 <= self.minimum <= self.workers <= self.maximum <= self.partitions:
            given = f"{self.minimum} <= {self.workers} <= {self.maximum} <= {self.partitions}"
            raise InvalidOption(
                "workers", given, "1 <= minimum <= workers <= maximum <= partitions"
            )
        if self.batch < 1 or self.tries < 1 or self.timeout <= 0:
            raise InvalidOption("batch", self.batch, "1 or more, like tries, and timeout above 0")

    @property
    def listed(self) -> str | None:
        """Its types as queries take them."""
        return None if self.types is None else f" {' '.join(sorted(self.types))} "

    async def prepared(self, events: Sequence[Event]) -> Any:
        """What `apply` is given: the events, or what `prepare` made of them."""
        if self.prepare is None:
            return events
        made = self.prepare(events)
        return await made if inspect.isawaitable(made) else made


class Applying:
    """The `tx` of a consumer: a unit of work that remembers of which event each job came."""

    def __init__(self, unit: "Unit", consumer: str, *, enqueues: bool = True) -> None:
        self._unit = unit
        self._consumer = consumer
        self._enqueues = enqueues
        self._counted: Counter[int] = Counter()

    def enqueue(self, call: Any, *, event: Event) -> Any:
        """Enqueue a call that an event has made due, in this commit, and never again for it.

        None if it was enqueued before, or if this is a rebuild that was not told to enqueue.
        """
        n = self._counted[event.sequence]
        self._counted[event.sequence] += 1
        if not self._enqueues:
            return None
        ours = (self._consumer, event.sequence, n)
        queries = self._unit.events.queries
        if not queries.run("record_job", ours):
            return None
        handle = self._unit.enqueue(call)
        jobs = handle.ids if hasattr(handle, "ids") else [handle.id]
        queries.run("name_jobs", (" ".join(jobs), *ours))
        return handle

    @cached_property
    def series(self) -> "Recording":
        """Figures of the events of this consumer, which belong to their sessions."""
        recording: Recording = self._unit.events.recording(self._consumer)
        return recording

    def enqueue_many(self, calls: Sequence[Any], *, event: Event) -> list[Any]:
        """The same for several calls."""
        return [self.enqueue(call, event=event) for call in calls]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)


class Consumers:
    """`app.consumer`: declares one; and all that an application has."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._declared: dict[str, Consumer] = {}
        self._made: dict[Any, Consumer | None] = {}
        self.breakers: dict[str, Breaker] = {}
        """Those around what consumers are enriched by, in this process."""

    def __call__(
        self, *, name: str, types: Iterable[str] | None = None, **options: Any
    ) -> Callable[[Any], Any]:
        """Make a consumer of a class with `apply(tx, prepared)`, or of such a function."""

        def declare(what: Any) -> Any:
            self.add(consumer_of(what, name=name, types=types, **options))
            return what

        return declare

    def add(self, consumer: Consumer) -> None:
        """Take a consumer in; a name is given once."""
        if consumer.name in self._declared:
            raise InvalidOption("name", consumer.name, "a name that no other consumer has")
        self._declared[consumer.name] = consumer

    def known(self) -> Mapping[str, Consumer]:
        """All of them, those of extensions included."""
        found = dict(self._declared)
        for extension in self._app.extensions:
            for each in extension.adds.get("events.consumers", ()):
                consumer = self._of_extension(each)
                if consumer is not None:
                    found.setdefault(consumer.name, consumer)
        return found

    def _of_extension(self, given: Any) -> Consumer | None:
        """A consumer, or what a function of the application makes: none if its settings say so."""
        if given not in self._made:
            loaded = load(given)
            self._made[given] = loaded if isinstance(loaded, Consumer) else loaded(self._app)
        return self._made[given]

    def get(self, name: str) -> Consumer:
        """One of them."""
        known = self.known()
        if name not in known:
            raise UnknownConsumer(name, known)
        return known[name]


def consumer_of(
    what: Any, *, name: str, types: Iterable[str] | None = None, **options: Any
) -> Consumer:
    """A consumer of a class or of a function that applies events."""
    made = what() if inspect.isclass(what) else what
    apply: Any = made if inspect.isfunction(made) else getattr(made, "apply", None)
    if not _is_plain(apply):
        raise InvalidOption("consumer", what, "a class with a plain apply(tx, prepared)")
    if isinstance(types, str):
        raise InvalidOption("types", types, "a list of event types")
    for option in options:
        if option not in Consumer.__struct_fields__:
            raise InvalidOption(
                "option", option, f"one of: {', '.join(Consumer.__struct_fields__)}"
            )
    workers = int(options.pop("workers", 1))
    partitions = int(options.pop("partitions", 8))
    return Consumer(
        name=name,
        apply=apply,
        prepare=getattr(made, "prepare", None),
        reset=getattr(made, "reset", None),
        digest=getattr(made, "digest", None),
        types=None if types is None else frozenset(types),
        partitions=partitions,
        workers=workers,
        minimum=int(options.pop("minimum", 1)),
        maximum=int(options.pop("maximum", max(workers, min(8, partitions)))),
        role=Role(options.pop("role", Role.NORMAL)),
        failing=Failing(options.pop("failing", Failing.GO_ON)),
        **options,
    )


def _is_plain(apply: Any) -> bool:
    return callable(apply) and not inspect.iscoroutinefunction(apply)
