"""`penstock enqueue`: put one job into the store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, console, json_text, parse_span, plain, write_json
from penstock.cli.root import Refused, say
from penstock.cli.session import bare_app, load, place_of, run
from penstock.operate.documents import decoded

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.config import Settings
    from penstock.model.job import Job, NewJob
    from penstock.store.contract import Store

MAX_TYPE = 128


def enqueue(
    ctx: typer.Context,
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="The job type's name.")],
    payload: Annotated[
        str,
        typer.Option(metavar="JSON", help="The arguments by name; @FILE or - for standard input."),
    ] = "{}",
    priority: Annotated[
        int | None, typer.Option(help="1 (most urgent) to 10.", show_default="5")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Not before then: 90, 15m, 2h, 1d.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Unique key: no second job while one is not done.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="The queue.", show_default="default")] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Run after this job has completed; may be repeated."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:APP",
            help="The application: checks the arguments, knows the type's queue.",
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Wait this long for the result; exit 1 without one."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if the queue is full; otherwise it waits.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Enqueue one job; it is durable when this returns."""
    options = {
        "priority": priority,
        "delay": None if delay is None else parse_span(delay, "delay") / 1000,
        "key": key,
        "queue": queue,
        "after": after or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    text = read_payload(payload)
    seconds = None if wait is None else parse_span(wait, "wait") / 1000
    if target is not None:
        app = load(ctx, target)
        job = typed_job(app, type_name, text, given)
    else:
        app = bare_app(ctx)
        job = untyped_job(app.settings, type_name, text, given)
    found, created = run(put(app, job, seconds, force))
    if as_json:
        write_json(answer(found, created, waited=wait is not None))
    else:
        tell(found, created, waited=wait is not None)


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
    type_ = app.find_type(type_name)
    options = app.checked(type_.defaults.with_(**given))
    return type_.from_payload(payload, options).job


def untyped_job(
    settings: "Settings", type_name: str, payload: str, given: dict[str, Any]
) -> "NewJob":
    """A job of a type that only its worker knows."""
    from msgspec import MsgspecError
    from msgspec.json import decode

    from penstock.app.options import JobOptions
    from penstock.model.errors import PayloadTooLarge
    from penstock.model.ids import new_id

    if not type_name or len(type_name) > MAX_TYPE or any(c.isspace() for c in type_name):
        raise Refused(f"A job type is a name of up to {MAX_TYPE} characters, not {type_name!r}.")
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
    return JobOptions().with_(**given).new_job(new_id(), type_name, payload)


async def put(
    app: "Penstock", job: "NewJob", seconds: float | None, force: bool
) -> "tuple[Job, bool]":
    """Enqueue, and wait for the end if asked to."""
    if not await app.store.exists():
        say(f"creating the store {place_of(app.settings.url)}.", 0)
    async with app:
        answer = (await app.admission.enqueue([job], {"force": force}))[0]
        found = await app.get(answer.id)
        if seconds is not None:
            found = await ended(app.store, answer.id, seconds)
        return found, answer.created


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
