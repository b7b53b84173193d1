"""The calls in a request's body: read without Pydantic, because a batch may hold thousands."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import astuple, replace

from penstock.app.after import awaited
from penstock.app.arguments import deeper_than
from penstock.app.job_type import Prepared
from penstock.app.options import with_options
from penstock.model.dependency import Edge, EdgeKind, check_condition
from penstock.model.errors import InvalidOption, ParentNotFound, PenstockError
from penstock.model.ids import id_time_ms, is_id, new_id
from penstock.model.job import MAX_BATCH, OPTIONS
from penstock.model.options import MAX_EDGES, MAX_METADATA, MAX_NAME, Choice, Moment, Option
from penstock.server.bodies import Reading, items_of, read_body
from penstock.server.problems import Refusal, field_of

if TYPE_CHECKING:
    from penstock.app.job_type import JobType
    from penstock.model.job import NewJob
    from penstock.operate.actor import Operator

LEEWAY_MS = 86_400_000
"""How far the clock of a caller who makes ids may be off: pages and pruning go by their time."""


class CallEdge(Edge, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`models.NewEdge` as it is read."""


def made_ids(calls: "Sequence[Call]", now: int) -> set[str]:
    """The ids that callers made themselves, each once and of about now."""
    made = [call.id for call in calls if call.id is not None]
    for job_id in made:
        if not is_id(job_id):
            raise Refusal(422, f"{job_id[:64]!r} is no ULID.", field="id")
        if abs(id_time_ms(job_id) - now) > LEEWAY_MS:
            raise Refusal(
                422, "The id is of another day; set the clock, and make one now.", field="id"
            )
    ids = set(made)
    if len(ids) < len(made):
        raise Refusal(422, "Two of the jobs have the same id.", field="id")
    return ids


def parents_of(calls: "Sequence[Call]") -> set[str]:
    """The ids of all jobs that calls wait for."""
    return {edge.parent_id for call in calls for edge in edges_in(call.after or ())}


def edges_in(entries: "Iterable[str | CallEdge]") -> list[Edge]:
    """What a job is to wait for, each entry the id of a job or an edge that makes sense."""
    edges = [Edge(parent_id=each) if isinstance(each, str) else _checked(each) for each in entries]
    for edge in edges:
        if not is_id(edge.parent_id):
            raise Refusal(422, f"{edge.parent_id[:64]!r} is no id of a job.", field="after")
    return edges


def _checked(edge: CallEdge) -> Edge:
    """The edge, if it makes sense."""
    if edge.kind is EdgeKind.ORDER:
        raise Refusal(422, "An edge of kind 'order' is made by the store alone.", field="after")
    _need(edge, "condition", EdgeKind.CONDITIONAL)
    _need(edge, "argument", EdgeKind.DATA)
    if edge.condition is not None:
        check_condition(edge.condition)
    name = edge.argument
    if name is not None and not (name.isidentifier() and len(name) <= 128):
        raise Refusal(422, "The argument of an edge is the name of one.", field="after")
    if edge.position is not None and (edge.argument is None or not 0 <= edge.position < 10_000):
        raise Refusal(
            422, "The position of an edge counts the values of its argument.", field="after"
        )
    return edge


def _need(edge: CallEdge, name: str, kind: EdgeKind) -> None:
    if (getattr(edge, name) is not None) is not (edge.kind is kind):
        raise Refusal(422, f"An edge has a {name} if it is of kind {kind.value!r}.", field="after")


_PLACE = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_OWN = frozenset({"id", "type", "payload", "key", "metadata"})
WRITTEN = 8
"""So many times the size that is kept may be written, in spaces and escapes."""

_EMPTY = Raw(b"{}")
_NOTHING = Raw(b"null")


class Call(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`models.NewJob` as it is read: what is looked at here; `WholeCall` has the other options."""

    id: str | None = None
    type: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    payload: Raw = _EMPTY
    key: str | None = None
    tenant: str | None = None
    after: Annotated[tuple[str | CallEdge, ...], Meta(max_length=MAX_EDGES)] | None = None
    metadata: Raw = _NOTHING

    @property
    def options(self) -> tuple[Any, ...]:
        """What it says besides its arguments and its key, to compare."""
        return (self.type, self.key is None, *_shared(self), bytes(self.metadata))


def _as_read(option: Option) -> Any:
    """The type that a decoder reads; what it says beyond that is checked as in a program."""
    if isinstance(option, Choice):
        return option.of
    return Annotated[datetime, Meta(tz=True)] if isinstance(option, Moment) else option.kind


WholeCall: Any = msgspec.defstruct(
    "WholeCall",
    [
        (name, _as_read(option) | None, None)
        for name, option in OPTIONS.items()
        if not option.local and name not in Call.__struct_fields__
    ],
    bases=(Call,),
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
_shared = attrgetter(*(name for name in WholeCall.__struct_fields__ if name not in _OWN))
_ONE = msgspec.json.Decoder(WholeCall)
_LIST: Any = list[WholeCall]
_MANY = msgspec.json.Decoder(Annotated[_LIST, Meta(min_length=1, max_length=MAX_BATCH)])


def read_calls(body: bytes) -> Call | list[Call]:
    """One call, or a list of them."""
    many = body.lstrip(b" \t\r\n")[:1] == b"["
    # A million calls would take long to make before somebody counted them.
    if many and items_of(body) > MAX_BATCH:
        raise Refusal(422, f"A list may hold at most {MAX_BATCH:,} jobs; send the rest afterwards.")
    try:
        calls: Call | list[Call] = read_body(body, (_MANY if many else _ONE).decode)
    except msgspec.ValidationError as error:
        field = _field(str(error))
        raise Refusal(422, f"{field}: {_PLACE.sub('', str(error))}.", field=field) from error
    return calls


def _field(sentence: str) -> str:
    """`body.3.priority` out of `… - at `$[3].priority``."""
    place = _PLACE.search(sentence)
    inside = place[1].replace("[", ".").replace("]", "") if place else ""
    return f"body{inside}"


class Drafts:
    """Makes calls of what a caller sent; options that many share are checked once."""

    def __init__(self, operator: "Operator", reading: Reading) -> None:
        self._operator = operator
        self._reading = reading
        self._app = operator.app
        self._templates: dict[tuple[Any, ...], tuple[JobType[..., ..., Any], NewJob]] = {}

    async def prepared(self, calls: list[Call], size: int) -> list[Prepared[Any]]:
        """All calls of so many bytes, or a refusal that names the first that is wrong."""
        await self._refuse_others(calls)
        return await self._reading.of(size, lambda: self._all(calls))

    def _all(self, calls: list[Call]) -> list[Prepared[Any]]:
        made: list[Prepared[Any]] = []
        for number, call in enumerate(calls):
            try:
                made.append(self._one(call))
            except PenstockError as error:
                if len(calls) == 1:
                    raise
                field = f"body.{number}.{field_of(error) or 'type'}"
                raise Refusal.of(error, field=field) from error
        return made

    def _one(self, call: Call) -> Prepared[Any]:
        type_, template = self._template(call)
        payload = bytes(call.payload).decode()
        type_.check_bounds(payload)
        type_.arguments.check(payload, awaited(template.after))
        job_id = call.id or new_id()
        key = OPTIONS["key"].stored(call.key)
        return Prepared(type_, replace(template, id=job_id, payload=payload, key=key))

    def _template(self, call: Call) -> "tuple[JobType[..., ..., Any], NewJob]":
        known = self._templates.get(call.options)
        if known is None:
            type_ = self._app.find_type(call.type)
            chosen = self._app.checked(with_options(type_.defaults, **self._options(call)))
            known = self._templates[call.options] = type_, chosen
        return known

    def _options(self, call: Call) -> dict[str, Any]:
        fields = zip(call.__struct_fields__, astuple(call), strict=True)
        given = {
            name: value
            for name, value in fields
            if value is not None and name not in ("id", "type", "payload", "metadata")
        }
        metadata = _metadata(call.metadata, self._app.settings.payload_depth)
        if metadata is not None:
            given["metadata"] = metadata
        tenant = self._operator.actor.tenant_of(call.tenant)
        if tenant is not None:
            given["tenant"] = tenant
        given["created_by"] = self._operator.actor.name
        return given

    async def _refuse_others(self, calls: list[Call]) -> None:
        """Whoever is bound to a tenant cannot tell another's job from one that is not there."""
        ids = made_ids(calls, self._app.store.clock.now())
        parents = parents_of(calls) - ids
        for parent in parents - await self._operator.jobs.own_ids(parents):
            raise ParentNotFound(parent)
        if ids and self._operator.actor.tenant is not None:
            await self._refuse_taken(ids)

    async def _refuse_taken(self, ids: set[str]) -> None:
        for job in await self._app.store.reader.get(sorted(ids)):
            if not self._operator.actor.owns(job.tenant_id):
                raise Refusal(409, "This id is taken; make another.", field="id")


def _metadata(raw: Raw, levels: int) -> dict[str, Any] | None:
    text = bytes(raw)
    if len(text) > WRITTEN * MAX_METADATA:
        size, most = f"{len(text):,} bytes", f"at most {MAX_METADATA:,} bytes of JSON"
        raise InvalidOption("metadata", size, most)
    if deeper_than(text.decode(), levels):
        raise Refusal(422, f"The metadata nests deeper than {levels} levels.", field="metadata")
    try:
        metadata: object = msgspec.json.decode(raw)
    except msgspec.ValidationError as error:
        raise Refusal(422, f"The metadata cannot be kept: {error}.", field="metadata") from error
    if metadata is not None and not isinstance(metadata, dict):
        raise Refusal(422, "The metadata of a job is an object.", field="metadata")
    return metadata
