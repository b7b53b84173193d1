"""`penstock agents`: the types of jobs, what each takes and gives, and one run by hand."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from penstock.apps.agents.options import OPTIONS, Options
from penstock.apps.agents.schedules import DEFAULTS
from penstock.apps.agents.schedules import reschedule as put_schedule
from penstock.apps.agents.worker import Worker, types_of
from penstock.extension import Shown
from penstock.model.errors import InvalidOption
from penstock.model.wording import span
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

TypeName = Annotated[str, "The type, as `penstock agents ls` names it."]


async def ls(app: "Penstock") -> Shown:  # noqa: ARG001
    """List the types of jobs, and how each is run."""
    from penstock.apps.agents.jobs import WORKERS

    people = [
        {"type": worker.name, **_shown(OPTIONS[worker.name]), "does": _summary(worker)}
        for worker in WORKERS
    ]
    return Shown(people, [_document(worker) for worker in WORKERS])


async def describe(app: "Penstock", name: TypeName) -> Shown:  # noqa: ARG001
    """Say what a type of jobs does, what it takes and gives, and how it is run."""
    worker = _worker(name)
    data, result = types_of(worker)
    schedules = [each for each in DEFAULTS if each.type == name]
    parts: list[Any] = [
        inspect.getdoc(worker) or "",
        [_field(field) for field in msgspec.structs.fields(data)] or "It takes no data.",
        f"It gives: {', '.join(_names(result)) or 'nothing'}.",
        _shown(OPTIONS[name]),
    ]
    parts += [f"Schedule {each.name}: {each.cron} UTC, {_text(each.data)}" for each in schedules]
    parts.append(f"penstock agents run {name} --data '{_text(_example(worker))}'")
    return Shown(tuple(parts), _document(worker))


async def run(
    app: "Penstock",
    actor: str,
    name: TypeName,
    data: Annotated[str, "What the type takes, as JSON."] = "{}",
    tenant: Annotated[str, "Whom the job belongs to."] = "",
    workspace: Annotated[str | None, "The tenant's workspace it is for."] = None,
    order_key: Annotated[str | None, "Jobs with the same one run one at a time."] = None,
    wait: Annotated[float, "Wait so many seconds for its result."] = 0,
) -> dict[str, Any]:
    """Enqueue one job, and wait for its result if asked; a worker has to be running for that."""
    _worker(name)
    try:
        given = msgspec.json.decode(data)
    except msgspec.MsgspecError as error:
        raise InvalidOption("data", data, f"a JSON object ({error})") from error
    handle = await app.agents.enqueue(
        name, given, tenant=tenant, workspace=workspace, order_key=order_key, created_by=actor
    )
    if not wait:
        return {"job": handle.id, "status": "enqueued"}
    result = await handle.result(timeout=wait)
    return {"job": handle.id, "status": "completed", "result": msgspec.to_builtins(result)}


async def reschedule(
    app: "Penstock",
    actor: str,
    name: Annotated[str, "The default schedule, such as session-cleanup."],
    cron: Annotated[str, "Five fields, or six with seconds first."],
    zone: Annotated[str, "An IANA time zone."] = "UTC",
) -> dict[str, Any]:
    """Give a default schedule other times; they stand through restarts and deploys."""
    view = await put_schedule(app, name, cron, zone=zone, actor=Operator(app, actor).actor)
    return {
        "schedule": view.name,
        "cron": view.schedule.expression,
        "zone": view.schedule.zone,
        "next": view.next_run,
    }


def _worker(name: str) -> type[Worker[Any, Any]]:
    from penstock.apps.agents.jobs import WORKERS

    known = {worker.name: worker for worker in WORKERS}
    if name not in known:
        raise InvalidOption("type", name, f"one of: {', '.join(known)}")
    return known[name]


def _summary(worker: type[Worker[Any, Any]]) -> str:
    return (inspect.getdoc(worker) or "").partition("\n")[0]


def _shown(options: Options) -> dict[str, Any]:
    growing = "" if options.backoff == 1 else ", doubled"
    return {
        "priority": options.priority,
        "retries": options.max_retries,
        "delay": f"{span(int(options.retry_delay * 1000))}{growing}",
        "timeout": span(int(options.timeout * 1000)),
        "per worker": options.per_worker,
        "rate": options.rate_per_worker or "",
        "queue": options.queue,
        "critical": "yes" if options.critical else "",
    }


def _document(worker: type[Worker[Any, Any]]) -> dict[str, Any]:
    data, result = types_of(worker)
    return {
        "type": worker.name,
        "does": inspect.getdoc(worker),
        "options": msgspec.to_builtins(OPTIONS[worker.name]),
        "takes": [_field(field) for field in msgspec.structs.fields(data)],
        "gives": _names(result),
        "example": _example(worker),
        "schedules": [msgspec.to_builtins(each) for each in DEFAULTS if each.type == worker.name],
    }


def _field(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    default = "" if field.required else _text(_default(field))
    kind = inspect.formatannotation(field.type)
    return {"name": field.encode_name, "kind": kind, "default": default}


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if callable(field.default_factory) else None


def _names(result: Any) -> list[str]:
    if isinstance(result, type) and issubclass(result, msgspec.Struct):
        return [field.encode_name for field in msgspec.structs.fields(result)]
    return []


def _example(worker: type[Worker[Any, Any]]) -> dict[str, Any]:
    """The worker's own example, or the data of its default schedule."""
    if worker.example:
        return dict(worker.example)
    return next((dict(each.data) for each in DEFAULTS if each.type == worker.name), {})


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
