"""The form that enqueues a job."""

from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from penstock.model.errors import PenstockError, StoreError, UnknownType
from penstock.server.api.calls import Call, Drafts, read_calls
from penstock.server.dashboard.forms import Form
from penstock.server.dashboard.outline import outline, summary
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import Enqueuing, Visit
from penstock.server.problems import Refusal

router = page_router()

FIELDS = ("type", "payload", "queue", "priority", "delay", "key", "tags", "tenant", "max_retries")
NUMBERS: dict[str, type[float]] = {"priority": int, "max_retries": int, "delay": float}


class Entered(Struct, frozen=True):
    """What stands in the form, and what is wrong with it, by field."""

    values: dict[str, str]
    problems: dict[str, str]


class Wrong(Exception):
    """A form that cannot be sent on: the field, and why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field if field in FIELDS else "payload"
        self.why = why


@router.get("/jobs/new")
async def new_job(visit: Enqueuing, type: str = "") -> Response:  # noqa: A002
    """An empty form, or one for a type."""
    return await _form(visit, Entered({"type": type}, {}))


@router.post("/jobs/new")
async def enqueue(visit: Enqueuing) -> Response:
    """Enqueue what the form says, or show it again with what is wrong."""
    try:
        job_id = await _enqueue(visit, _read(visit.form))
    except Wrong as wrong:
        values = {name: visit.form.get(name) for name in FIELDS}
        return await _form(visit, Entered(values, {wrong.field: wrong.why}), status=422)
    return visit.redirect(f"jobs/{job_id}", "The job is enqueued.")


async def _form(visit: Visit, entered: Entered, *, status: int = 200) -> Response:
    types = {each.name: each for each in visit.server.app.types.values()}
    chosen = types.get(entered.values.get("type", ""))
    values = dict(entered.values)
    if chosen is not None:
        values.setdefault("payload", outline(chosen))
    return await visit.page(
        "enqueue.html",
        "jobs",
        status=status,
        live=False,
        types={name: summary(each) for name, each in sorted(types.items())},
        chosen=chosen,
        values=values,
        problems=entered.problems,
    )


def _read(form: Form) -> Call:
    given: dict[str, Any] = {name: form.get(name) for name in FIELDS if form.get(name)}
    if "tags" in given:
        given["tags"] = [tag.strip() for tag in given["tags"].split(",") if tag.strip()]
    for name, kind in NUMBERS.items():
        if name in given:
            given[name] = _number(name, given[name], kind)
    try:
        given["payload"] = msgspec.json.decode(given.get("payload", "{}"))
    except msgspec.DecodeError as error:
        raise Wrong("payload", f"This is no JSON: {error}.") from None
    try:
        found = read_calls(msgspec.json.encode(given))
    except Refusal as error:
        field = (error.field or "").removeprefix("body.")
        raise Wrong(field, error.detail.removeprefix(f"body.{field}: ")) from None
    assert isinstance(found, Call)
    return found


def _number(name: str, text: str, kind: type[float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise Wrong(name, f"{text!r} is no number.") from None


async def _enqueue(visit: Visit, call: Call) -> str:
    operator = visit.operator
    try:
        [made] = await Drafts(operator).prepared([call])
        job = made.job
        told = {"type": job.type, "tenant_id": job.tenant_id}
        async with operator.doing("job.enqueue", f"job:{job.id}", **told):
            return (await operator.app.enqueue(made, wait=False)).id
    except StoreError:
        raise
    except UnknownType as error:
        raise Wrong("type", str(error)) from None
    except Refusal as error:
        raise Wrong(error.field or "", error.detail) from None
    except PenstockError as error:
        raise Wrong(getattr(error, "option", ""), str(error)) from None
