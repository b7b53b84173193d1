"""The form that enqueues a job."""

import inspect
import json
from typing import Any, get_type_hints

import msgspec
from msgspec import Raw
from msgspec.json import decode, encode
from starlette.responses import Response

from penstock.app.handle import JobHandle
from penstock.app.job_type import JobType
from penstock.model.errors import PenstockError
from penstock.model.ids import new_id
from penstock.model.job import OPTIONS, NewJob
from penstock.model.options import (
    Document,
    Edges,
    Factor,
    Keep,
    Moment,
    Option,
    Seconds,
    Whole,
    Words,
)
from penstock.model.store_errors import StoreError
from penstock.server.api.calls import Call, Drafts, read_calls
from penstock.server.dashboard.request import EnqueueVisit, Entered, Form, Visit, problems_of
from penstock.server.dashboard.route import page_router
from penstock.server.problems import Refusal

EXAMPLES: dict[type, Any] = {
    str: "",
    int: 0,
    float: 0.0,
    bool: False,
    list: [],
    dict: {},
    tuple: [],
}


def outline(type_: JobType[..., ..., Any]) -> str:
    """The arguments by name, each with its default or something of its kind."""
    try:
        hints = get_type_hints(type_.function)
    except Exception:  # a hint that cannot be resolved is the type's own matter
        hints = {}
    named = {
        name: _example(parameter, hints.get(name))
        for name, parameter in inspect.signature(type_.function).parameters.items()
        if type_.arguments.has(name) and parameter.kind is not parameter.VAR_KEYWORD
    }
    return json.dumps(named, indent=2, ensure_ascii=False)


def summary(type_: JobType[..., ..., Any]) -> str:
    """The first line of what its function says of itself."""
    return (inspect.getdoc(type_.function) or "").partition("\n")[0]


def _example(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is not parameter.empty:
        try:
            return msgspec.to_builtins(parameter.default)
        except TypeError:
            return None
    return EXAMPLES.get(getattr(hint, "__origin__", hint))


router = page_router()

SHOWN = [option for option in OPTIONS.values() if not option.local]
FIELDS = ("type", "payload", *(option.name for option in SHOWN))


@router.get("/jobs/new")
async def new_job(visit: EnqueueVisit, type: str = "") -> Response:  # noqa: A002
    """An empty form, or one for a type."""
    return await _form(visit, Entered({"type": type}))


@router.post("/jobs/new")
async def enqueue(visit: EnqueueVisit) -> Response:
    """Enqueue what the form says, or show it again with what is wrong."""
    try:
        job = await _enqueue(visit, _call(visit.form))
    except StoreError:
        raise
    except (Refusal, PenstockError) as error:
        values = {name: visit.form.get(name) for name in FIELDS}
        return await _form(visit, Entered(values, problems_of(error, FIELDS)))
    said = (
        "The job is enqueued."
        if job.created
        else "The job was already there; nothing was enqueued."
    )
    return visit.redirect(f"jobs/{job.id}", said)


async def _form(visit: Visit, filled: Entered) -> Response:
    types = {each.name: each for each in visit.server.app.types.values()}
    chosen = types.get(filled.values.get("type", ""))
    usual = NewJob(id="", type="") if chosen is None else chosen.defaults
    values = dict(filled.values)
    if chosen is not None:
        values.setdefault("payload", outline(chosen))
    return await visit.page(
        "enqueue.html",
        "jobs",
        status=filled.status,
        live=False,
        types={name: summary(each) for name, each in sorted(types.items())},
        chosen=chosen,
        values=values,
        options=[
            option
            for option in SHOWN
            if option.name != "tenant" or visit.operator.actor.tenant is None
        ],
        defaults={option.name: as_text(option, usual) for option in SHOWN},
        job_id=new_id(),
        problems=filled.problems,
    )


def _call(form: Form) -> Call:
    # With the id that was made with the form: sent twice, it makes one job.
    given: dict[str, Any] = {name: form.get(name) or None for name in ("id", "type")}
    given |= {option.name: entered(form, option) for option in SHOWN if form.get(option.name)}
    given["payload"] = Raw(form.json("payload", "{}").encode())
    call = read_calls(encode({name: value for name, value in given.items() if value is not None}))
    assert isinstance(call, Call)
    return call


def entered(form: Form, option: Option) -> Any:
    """What stands in the field of an option, as JSON has it."""
    match option:
        case Whole():
            return form.whole(option.name)
        case Factor() | Seconds():
            return form.number(option.name)
        case Moment():
            return form.moment(option.name)
        case Words() | Edges():
            return [each.strip() for each in form.get(option.name).split(",") if each.strip()]
        case Document():
            return decode(form.json(option.name))
        case _:
            return form.get(option.name)


def as_text(option: Option, job: NewJob) -> str:
    """What a job holds for an option, as a person types it."""
    value = getattr(job, option.field)
    if isinstance(option, Words):
        return ", ".join(value)
    if isinstance(option, Document) and value is not None:
        return str(value)
    if isinstance(option, Keep):
        return "" if value is None else str(option.written(value)).lower()
    return "" if not value else str(option.written(value))


async def _enqueue(visit: Visit, call: Call) -> JobHandle[Any]:
    operator = visit.operator
    [made] = await Drafts(operator, visit.server.reading).prepared([call], len(call.payload))
    job = made.job
    details = {"type": job.type, "tenant_id": job.tenant_id}
    async with operator.actor.doing("job.enqueue", f"job:{job.id}", **details):
        return await operator.app.enqueue(made, wait=False)
