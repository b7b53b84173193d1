"""What the global options say, and the store they lead to."""

import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from penstock.cli.root import Refused

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.config import Settings
    from penstock.operate.actor import Operator
    from penstock.store.contract import Store

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """The global options; what they leave open, the environment and `penstock.toml` say."""

    url: str | None = None
    dispatch: str | None = None
    config: Path | None = None
    debug: bool = False

    @property
    def settings(self) -> "Settings":
        """Flags over environment over TOML over defaults."""
        from penstock.config import load_settings

        return load_settings(self.config, url=self.url, dispatch=self.dispatch)

    @property
    def names_a_store(self) -> bool:
        """Whether anybody said which store is meant."""
        from penstock.config import Settings

        return self.url is not None or self.settings.url != Settings().url


def session(ctx: typer.Context) -> Session:
    """The session the root command made."""
    found = ctx.find_object(Session)
    return found or Session()


def ask(ctx: typer.Context, question: "Callable[[Store], Awaitable[T]]") -> T:
    """Open the store that exists, ask it one thing, close it."""
    return run(asked(session(ctx).settings.url, question))


def full_id(ctx: typer.Context, typed: str) -> str:
    """The id of a job of which at least an unmistakable beginning was typed."""
    return full_ids(ctx, [typed])[0]


def full_ids(ctx: typer.Context, typed: "Sequence[str]") -> list[str]:
    """The same for several; a store is asked only where one is not complete."""
    from penstock.model.ids import is_id

    if all(map(is_id, typed)):
        return list(typed)

    async def look(store: "Store") -> list[str]:
        return [await _completed(store, each) for each in typed]

    return ask(ctx, look)


async def _completed(store: "Store", typed: str) -> str:
    """The whole id; what no job's id begins with is left to the command to speak about."""
    from penstock.model.not_found import JobNotFound
    from penstock.operate.jobs import find_id

    try:
        return await find_id(store, typed)
    except JobNotFound:
        return typed


def ask_now(ctx: typer.Context, question: "Callable[[Store], Awaitable[T]]") -> tuple[T, int]:
    """The same, with the time by the store's clock."""

    async def timed(store: "Store") -> tuple[T, int]:
        return await question(store), store.clock.now()

    return ask(ctx, timed)


def bare_app(ctx: typer.Context, url: str | None = None) -> "Penstock":
    """An application that knows the store, or the one at another URL, and no job type."""
    from msgspec.structs import replace

    from penstock.app.penstock import Penstock

    settings = session(ctx).settings
    return Penstock(settings=settings if url is None else replace(settings, url=url))


def app_on(store: "Store", app: "Penstock") -> "Penstock":
    """An application with its extensions, on a store that was opened already."""
    app.store = store
    app.extensions.enable_installed()
    return app


def ask_app(app: "Penstock", question: "Callable[[Penstock], Awaitable[T]]") -> T:
    """Open an application whose store exists, ask it one thing, close it."""

    async def opened() -> T:
        await refuse_missing(app.store)
        async with app:
            return await question(app)

    return run(opened())


def operate(
    ctx: typer.Context, action: "Callable[[Operator], Awaitable[T]]", *, create: bool = False
) -> T:
    """Do one thing as the person at this terminal, on record; only a store that was named is made.

    One that nobody named would be a second one beside that of the application.
    """
    named = session(ctx).names_a_store
    return operate_on(bare_app(ctx), action, create=create and named)


def operate_on(
    app: "Penstock", action: "Callable[[Operator], Awaitable[T]]", *, create: bool = False
) -> T:
    """The same for an application that is already there; a missing store is refused."""
    from penstock.operate.actor import Operator

    async def opened() -> T:
        if not create:
            await refuse_missing(app.store)
        async with app:
            return await action(Operator(app, actor()))

    return run(opened())


def actor() -> str:
    """What the audit log calls whoever types commands."""
    return f"cli:{user()}"


def user() -> str:
    """Who types commands; a process without an account has a number."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; importing asyncio is put off until something has to run."""
    import asyncio

    return asyncio.run(work)


async def asked(
    url: str,
    question: "Callable[[Store], Awaitable[T]]",
    *,
    create: bool = False,
    moving: bool = False,
    dispatch: str | None = None,
) -> T:
    """Open a store, ask it one thing, close it; a missing one is refused unless `create`.

    One that was moved away is opened for `moving` alone.
    """
    from penstock.store.open import open_store

    # What is there already may be looked at, wherever it is kept.
    store = open_store(url, dispatch=dispatch, allow_volatile=not create)
    try:
        if not create:
            await refuse_missing(store)
        await store.open(moving=moving)
        return await question(store)
    finally:
        await store.close()


def database_file(url: str) -> Path:
    """The file behind a SQLite URL."""
    from urllib.parse import unquote

    from penstock.store.open import open_store

    open_store(url)
    if not url.startswith("sqlite:"):
        raise Refused("Only a SQLite store is a file; copy others with the tools of their server.")
    name = unquote(url.partition(":///")[2].partition("?")[0])
    if name == ":memory:":
        raise Refused(
            f"Option 'url' is {url!r}, which no other process can see; "
            "name a file such as sqlite:///work.db."
        )
    return Path(name).expanduser().absolute()


def place_of(url: str) -> str:
    """What to call a store when talking to people: its file, or its URL without the password."""
    from penstock.model.redact import without_password

    return str(database_file(url)) if url.startswith("sqlite:") else without_password(url)


async def refuse_missing(store: "Store") -> None:
    """Refuse to make a store by looking for it."""
    place = place_of(store.url)
    if not await store.exists():
        await store.close()
        raise Refused(
            f"There is no store at {place}; name another with --url or PENSTOCK_URL, "
            "or create this one with `penstock migrate`."
        )


def pass_on(chosen: Session) -> None:
    """Let load_settings() of the application, here and in child processes, find what was said."""
    if chosen.config is not None:
        os.environ["PENSTOCK_CONFIG"] = str(chosen.config.absolute())
    if chosen.dispatch is not None:
        os.environ["PENSTOCK_DISPATCH"] = chosen.dispatch


def load(ctx: typer.Context, target: str, *, reload: bool = False) -> "Penstock":
    """The application behind `module:app`, with --url, --dispatch and --config applied.

    With `reload`, one that cannot be loaded is waited for instead of refused.
    """
    from penstock.model.errors import PenstockError
    from penstock.worker.target import load_app

    chosen = session(ctx)
    pass_on(chosen)
    try:
        app = load_app(target, chosen.url)
        app.settings = app.settings.replace(dispatch=chosen.dispatch)
        return app
    except Exception as error:
        if reload:
            _start_again_when_repaired(error, target)
        if isinstance(error, PenstockError):
            raise
        raise Refused(
            f"Importing {target!r} raised {type(error).__name__}: {error}; "
            "run it again with --debug for the traceback."
        ) from error


def _start_again_when_repaired(error: Exception, target: str) -> NoReturn:
    """Wait for a change of the code, then begin anew: this process keeps what it has loaded."""
    from penstock.worker.reload import wait_for_repair

    try:
        wait_for_repair(error, target, None)
    except KeyboardInterrupt:
        raise typer.Exit from None
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
