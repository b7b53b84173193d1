"""`penstock enqueue`: put one job into the store."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from penstock.cli.output import (
    JsonFlag,
    console,
    json_text,
    parse_span,
    parse_time,
    plain,
    write_json,
)
from penstock.cli.root import Refused, say
from penstock.cli.session import bare_app, full_ids, load, place_of, run
from penstock.model.job import OPTIONS
from penstock.model.options import (
    MAX_NAME,
    Choice,
    Document,
    Edges,
    Factor,
    Keep,
    Moment,
    Name,
    Option,
    Seconds,
    Text,
    Whole,
    Words,
)
from penstock.operate.documents import decoded

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.config import Settings
    from penstock.model.job import Job, NewJob
    from penstock.store.contract import Store

C = TypeVar("C", bound=Callable[..., None])
KINDS: dict[type[Option], Any] = {
    Whole: int,
    Factor: float,
    Words: list[str],
    Edges: list[str],
}
METAVARS: dict[type[Option], str] = {
    Name: "NAME",
    Text: "TEXT",
    Whole: "N",
    Factor: "FACTOR",
    Choice: "WORD",
    Keep: "HOW",
    Seconds: "SPAN",
    Moment: "TIME",
    Words: "WORD,WORD",
    Document: "JSON",
    Edges: "ID",
}


def call_options(*, of_schedule: bool = False) -> Callable[[C], C]:
    """Give a command every option of a call, or those of a schedule, as its keyword arguments."""

    def decorate(command: C) -> C:
        signature = inspect.signature(command)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        options = [o for o in OPTIONS.values() if o.in_schedules or not of_schedule]
        added = [_parameter(option) for option in options]
        parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in own] + added
        typed: Any = command  # it is read by typer, which knows no keyword arguments but these
        typed.__signature__ = signature.replace(parameters=parameters)
        typed.__annotations__ |= {each.name: each.annotation for each in added}
        return command

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    default = option.written(option.default) if option.default else False
    about = option.about
    if isinstance(option, Seconds):
        about = f"{about.removesuffix('.')}: 90, 15m, 2h, 1d."
    elif isinstance(option, Keep):
        about = f"{about.removesuffix('.')}: {option.example}."
    elif isinstance(option, Words | Edges):
        about = f"{about.removesuffix('.')}; may be repeated."
    elif option.choices:
        about = f"{about.removesuffix('.')}: {', '.join(option.choices)}."
    typed = typer.Option(
        f"--{option.name.replace('_', '-')}",
        metavar=METAVARS[type(option)],
        help=about,
        show_default=str(default) if default else False,
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[KINDS.get(type(option), str) | None, typed],
    )


def parse_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a call that a command was given, as a program writes them."""
    return {name: _parsed(name, value) for name, value in given.items() if value not in (None, [])}


def _parsed(name: str, value: Any) -> Any:
    match OPTIONS[name]:
        case Seconds():
            return parse_span(value, name) / 1000
        case Moment():
            return parse_time(value, name, "UTC")
        case Words():
            words = (word.strip() for each in value for word in each.split(","))
            return tuple(word for word in words if word)
        case Document():
            return _mapping(name, value)
        case _:
            return value


def _mapping(name: str, text: str) -> Any:
    from msgspec import MsgspecError
    from msgspec.json import decode

    try:
        return decode(text)
    except (ValueError, MsgspecError, RecursionError) as error:
        raise Refused(f"Option {name!r} is not JSON ({error}); quote it for the shell.") from error


@call_options()
def enqueue(
    ctx: typer.Context,
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="The job type's name.")],
    payload: Annotated[
        str,
        typer.Option(metavar="JSON", help="The arguments by name; @FILE or - for standard input."),
    ] = "{}",
    target: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:APP",
            help="The application, to check the arguments and know the type's queue.",
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Wait this long for the result; exit 1 without one."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Enqueue even if the queue is full, instead of waiting.")
    ] = False,
    as_json: JsonFlag = False,
    **given: Any,
) -> None:
    """Enqueue one job; it is durable when this returns."""
    if given.get("after"):
        given["after"] = full_ids(ctx, given["after"])
    options = parse_options(given)
    text = read_payload(payload)
    seconds = None if wait is None else parse_span(wait, "wait") / 1000
    if target is not None:
        app = load(ctx, target)
        job = typed_job(app, type_name, text, options)
    else:
        app = bare_app(ctx)
        job = untyped_job(app.settings, type_name, text, options)
    enqueued, created = run(put(app, job, seconds, force, warns=target is None))
    if as_json:
        write_json(answer(enqueued, created, waited=wait is not None))
    else:
        tell(enqueued, created, waited=wait is not None)


def read_payload(text: str) -> str:
    """The payload itself, or what a file or standard input holds."""
    try:
        if text == "-":
            return sys.stdin.read()
        return Path(text[1:]).read_text("utf-8") if text.startswith("@") else text
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"Option 'payload' names {text[1:]!r}, which cannot be read ({error})."
        ) from error


def typed_job(app: "Penstock", type_name: str, payload: str, given: dict[str, Any]) -> "NewJob":
    """A job checked against its type's arguments."""
    from penstock.app.options import with_options

    type_ = app.find_type(type_name)
    options = app.checked(with_options(type_.defaults, **given))
    return type_.from_payload(payload, options).job


def untyped_job(
    settings: "Settings", type_name: str, payload: str, given: dict[str, Any]
) -> "NewJob":
    """A job of a type that only its worker knows."""
    from msgspec import MsgspecError
    from msgspec.json import decode

    from penstock.app.options import with_options
    from penstock.model.errors import PayloadTooLarge
    from penstock.model.ids import new_id
    from penstock.model.job import NewJob

    if not type_name or len(type_name) > MAX_NAME or any(c.isspace() for c in type_name):
        raise Refused(f"A job type is a name of up to {MAX_NAME} characters, not {type_name!r}.")
    size = len(payload.encode(errors="replace"))
    if size > settings.payload_limit:
        raise PayloadTooLarge(type_name, size, settings.payload_limit)
    try:
        arguments = decode(payload)
    except (ValueError, MsgspecError) as error:
        raise Refused(f"Option 'payload' is not JSON ({error}); quote it for the shell.") from error
    except RecursionError:
        raise Refused("Option 'payload' is nested too deeply.") from None
    if not isinstance(arguments, dict):
        raise Refused(
            f"Option 'payload' is a JSON {type(arguments).__name__}, but it must be an object of "
            'arguments by name, such as {"to": "a@example.com"}.'
        )
    return with_options(NewJob(id=new_id(), type=type_name, payload=payload), **given)


async def put(
    app: "Penstock", job: "NewJob", seconds: float | None, force: bool, *, warns: bool
) -> "tuple[Job, bool]":
    """Enqueue, and wait for the end if asked to; warn of a type that nobody knows."""
    if not await app.store.exists():
        say(f"creating the store {place_of(app.settings.url)}.", 0)
    async with app:
        answer = (await app.admission.enqueue([job], {"force": force}))[0]
        enqueued = await app.get(answer.id)
        if warns and answer.created:
            await warn_of_unknown(app.store, enqueued)
        if seconds is not None:
            enqueued = await ended(app.store, answer.id, seconds)
        return enqueued, answer.created


async def warn_of_unknown(store: "Store", job: "Job") -> None:
    """Say so if no live worker knows the type, or none uses such a queue."""
    from difflib import get_close_matches

    from penstock.store.contract import JobFilter

    live = [worker for worker in await store.workers.list() if worker.alive]
    known = sorted({name for worker in live for name in worker.types})
    if job.type in known:
        if not any(
            job.queue in (*worker.declared_queues, *(worker.queues or ())) for worker in live
        ):
            told = (
                f"no live worker uses queue {job.queue!r}; `--app MODULE:APP` takes the type's own."
            )
            say(told, 0)
        return
    if not live and len(await store.reader.find(JobFilter(type=job.type, limit=2))) > 1:
        return  # it ran here before, and no worker is up just now
    who = "no live worker knows it" if live else "no worker is alive, and none has run it here yet"
    close = get_close_matches(job.type, known, 3)
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
    wait = " It waits until a worker that knows it starts."
    say(f"nobody declares the job type {job.type!r}: {who}{meant}{wait}", 0)


async def ended(store: "Store", job_id: str, seconds: float) -> "Job":
    """The job once it has completed; raises when it ends otherwise or not in time."""
    import asyncio

    from penstock.model.errors import JobCancelled, JobFailed, ResultTimeout
    from penstock.model.states import Status

    seen: Job | None = None
    try:
        async with asyncio.timeout(seconds):
            async for job in store.reader.watch([job_id]):
                seen = job
    except TimeoutError:
        raise ResultTimeout(job_id, seconds, seen.status if seen else None) from None
    if seen is None or seen.status is Status.CANCELLED:
        raise JobCancelled(job_id, seen.error if seen else None)
    if seen.status is not Status.COMPLETED:
        raise JobFailed(job_id, seen.status, seen.error)
    return seen


def answer(job: "Job", created: bool, *, waited: bool) -> dict[str, Any]:
    """What a script wants to know of the new job."""
    facts = {
        "id": job.id,
        "created": created,
        "type": job.type,
        "queue": job.queue,
        "priority": job.priority,
        "status": job.status.value,
    }
    return facts | ({"result": decoded(job.result)} if waited else {})


def tell(job: "Job", created: bool, *, waited: bool) -> None:
    """The same for a person."""
    out = console()
    if not created:
        out.print(
            f"Key {plain(repr(job.key))} is held by [bold]{job.id}[/] ({job.status.value}); "
            "nothing new was enqueued.",
            soft_wrap=True,
        )
    else:
        where = f"{plain(job.type)}, queue {plain(job.queue)}, priority {job.priority}"
        out.print(f"Enqueued [bold]{job.id}[/] ({where}).", soft_wrap=True)
    if waited:
        out.print(json_text(decoded(job.result)), markup=False)
