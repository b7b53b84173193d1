"""Jobs as documents: what a caller sends, and what it gets."""

from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from msgspec import Struct
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from penstock.model import explain as model
from penstock.model import options
from penstock.model.dependency import EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.explain import ReasonKind
from penstock.model.job import MAX_PAGE, MAX_REASON, OPTIONS
from penstock.model.job import Job as StoredJob
from penstock.model.options import MAX_NAME, MAX_TEXT, Option
from penstock.model.states import Status
from penstock.operate.documents import STORED, document, is_time
from penstock.store import contract

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Word = Annotated[str, Field(max_length=MAX_TEXT)]
PageSize = Annotated[int, Field(ge=1, le=MAX_PAGE)]
JobId = Annotated[
    str,
    Field(
        pattern="^[0-7][0-9A-HJKMNP-TV-Z]{25}$",
        description="A ULID.",
        examples=["01JD3Z6K3V9M0Q2T4W6Y8A0C2E"],
    ),
]
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class Document(BaseModel):
    """A document whose fields are all known."""

    model_config = ConfigDict(extra="forbid")


class Why(Document):
    """Why something is done; others will see it."""

    reason: str | None = Field(None, max_length=MAX_REASON, examples=["the order was withdrawn"])


class NewEdge(Document):
    """What a job waits for, where the id of a job that must complete does not say all."""

    parent_id: JobId
    kind: Literal["success", "completion", "data", "conditional"] = "success"
    condition: str | None = Field(
        None,
        max_length=500,
        description="On the parent's result, of an edge of kind `conditional`.",
    )
    argument: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="What the parent's result fills, of an edge of kind `data`.",
    )
    position: int | None = Field(
        None, ge=0, lt=10_000, description="Its place, where several fill one argument as a list."
    )
    on_failure: OnFailure = OnFailure.CANCEL
    on_requeue: OnRequeue = OnRequeue.RESTORE


def _options(name: str, wanted: Callable[[Option], bool]) -> Any:
    """A document of those options of a call that are wanted, none of which has to be there."""
    fields: dict[str, Any] = {
        option.name: (
            _kind(option) | None,
            Field(None, description=_description(option), **option.bounds),
        )
        for option in OPTIONS.values()
        if wanted(option)
    }
    return create_model(name, __base__=Document, **fields)


def _description(option: Option) -> str:
    return f"{option.about} In {option.unit}." if option.unit else option.about


def _kind(option: Option) -> Any:
    match option:
        case options.Moment():
            return AwareDatetime
        case options.Choice():
            return option.of
        case options.Words():
            return list[Word]
        case options.Edges():
            return list[JobId | NewEdge]
        case _:
            return option.kind


def _fields_of(struct: type[Struct]) -> Any:
    """A document of what `document` makes of each field of a record with an id."""
    fields: dict[str, Any] = {
        name: (_shown(name, kind), ...) for name, kind in struct.__annotations__.items()
    }
    fields["id"] = (JobId, ...)
    return create_model("Stored", __base__=Document, **fields)


def _shown(name: str, kind: Any) -> Any:
    if name in STORED:
        return Any
    if is_time(name):
        moment: Any = Moment
        return moment | None if NoneType in get_args(kind) else moment
    return list[str] if get_origin(kind) is tuple else kind


if TYPE_CHECKING:  # their fields are known at run time only
    _ForCalls = Document
    _ForSchedules = Document
    _Stored = Document
else:
    _ForCalls = _options("ForCalls", lambda option: not option.local)
    _ForSchedules = _options("ForSchedules", lambda each: each.in_schedules and not each.local)
    _Stored = _fields_of(StoredJob)


class CallOptions(_ForSchedules):
    """How a job is to be run; what is left out, its type says."""


class NewJob(_ForCalls):
    """A job to enqueue; what is left out, its type says. `after` may name jobs of the same list."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "send_mail",
                    "payload": {"to": "ann@example.com"},
                    "queue": "mail",
                    "priority": 3,
                    "key": "welcome-ann",
                }
            ]
        }
    )

    id: JobId | None = Field(
        None,
        description="A ULID made by the caller just now. A request that is sent again with the "
        "same ids makes no job twice.",
    )
    type: Name = Field(description="The registered name of the job type.")
    payload: dict[str, Any] = Field({}, description="The arguments, by name.")


class Enqueued(Document):
    """What became of a job that was sent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "01JD3Z6K3V9M0Q2T4W6Y8A0C2E",
                    "created": True,
                    "estimated_start": "2026-11-15T03:28:00.000Z",
                }
            ]
        }
    )

    id: JobId
    created: bool = Field(description="False when a key or a repeated id found an earlier job.")
    estimated_start: Moment | None = Field(
        None, description="When it will start, by what waits ahead; absent if nobody knows."
    )


class Job(_Stored):
    """A job as it stands."""


class JobPage(Document):
    """Some jobs, newest first, and where to go on."""

    jobs: list[Job]
    next: str | None = Field(
        description="Pass it as `before` for the next page; absent on the last. "
        "A page may be short or empty without being the last."
    )


class Execution(Document):
    """One time a worker ran a job."""

    job_id: JobId
    fence: int
    status: str = Field(description="How it ended; `running` while it has not.")
    started_at: Moment
    ended_at: Moment | None
    duration_ms: int | None
    wait_ms: int | None
    result: Any
    error: str | None
    error_class: str | None
    error_code: str | None
    error_stack: str | None
    worker: str | None
    node: str | None
    memory_kb: int | None
    cpu_ms: int | None


class LogLine(Document):
    """A line that a handler wrote about its job."""

    at: Moment
    fence: int
    level: str
    message: str


class Edge(Document):
    """One thing a job waits, or waited, for."""

    parent_id: JobId
    child_id: JobId
    kind: EdgeKind
    condition: str | None
    argument: str | None
    on_failure: OnFailure
    parent_type: str | None
    parent_status: Status | None
    child_type: str | None
    child_status: Status | None
    outcome: Outcome | None
    closed_at: Moment | None


class JobDetail(Job):
    """A job with all that is known of it: the newest 100 executions, 1,000 lines, 200 edges."""

    executions: list[Execution] = Field(description="The newest 100, oldest first.")
    parents: list[Edge] = Field(description="What it waits for, the open ones first, up to 100.")
    children: list[Edge] = Field(description="What waits for it, up to 100.")
    logs: list[LogLine] = Field(description="What its handler wrote, the latest 1,000 lines.")


class Reason(Document):
    """One reason why a job does, or does not, run."""

    kind: ReasonKind
    sentence: str
    jobs: list[str]
    workers: list[str]
    by: str | None
    since_at: Moment | None
    until_at: Moment | None


class Explanation(Document):
    """Where a job stands and every reason for it, the most important first."""

    job_id: JobId
    status: Status
    asked_at: Moment
    reasons: list[Reason]


class JobEvent(Document):
    """What the data of a `state` or `progress` event holds."""

    id: JobId
    status: Status
    attempts: int
    progress_percent: float | None
    progress_message: str | None
    progress: dict[str, Any] | None
    error: str | None
    at: Moment


def job_documents(jobs: Sequence[StoredJob]) -> list[Job]:
    """Jobs as they stand."""
    return [Job.model_construct(**document(job)) for job in jobs]


def execution_documents(executions: Sequence[contract.Execution]) -> list[Execution]:
    """Executions, in the order given."""
    return [Execution.model_construct(**document(run)) for run in executions]


def log_documents(lines: Sequence[contract.LogLine]) -> list[LogLine]:
    """Log lines, in the order given."""
    return [LogLine.model_construct(**document(line)) for line in lines]


def edge_documents(edges: Sequence[contract.Dependency]) -> list[Edge]:
    """Edges, each in one piece."""
    return [_edge(each) for each in edges]


def explanation_document(found: model.Explanation) -> Explanation:
    """Where a job stands, and why."""
    opened: dict[str, Any] = document(found)
    opened["reasons"] = [Reason.model_construct(**document(each)) for each in found.reasons]
    return Explanation.model_construct(**opened)


def _edge(found: contract.Dependency) -> Edge:
    opened: dict[str, Any] = document(found)
    inner = document(found.edge)
    kept = ("parent_id", "kind", "condition", "argument", "on_failure")
    opened = {name: value for name, value in opened.items() if name != "edge"}
    return Edge.model_construct(**opened, **{name: inner[name] for name in kept})
