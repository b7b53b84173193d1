"""Nothing that a handler says about a person or a password is in the store afterwards."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from penstock import Cancel, Context, Dead, Penstock, Retry, Settings, Snooze, Worker
from penstock.model.retry import ErrorClass
from penstock.store.contract import Resolution
from penstock.testing import FakeClock, drain
from tests.support.places import Place
from tests.support.redis_raw import RawKeys

ADDRESS = "-".join(("canary.ada", "ada")) + "@example.com"
CANARIES = ("canary.ada", "example.com", "c4n4ry", "c4nary-token")
SECRETS = (
    f"{ADDRESS} at postgresql://u:c4n4ry@db/app, proxy u:c4n4ry@cache:3128, "
    f"GET /users?email=canary.ada%40example.com, password=c4n4ry, token: c4nary-token"
)


def everything_in(place: Place) -> str:
    """All that a store holds, as text."""
    found = []
    if place.url.startswith("sqlite"):
        path = Path(urlsplit(place.url).path[1:])
        files = (path, Path(f"{path}-wal"))
        found += [each.read_bytes().decode("latin-1") for each in files if each.exists()]
    elif place.url.startswith("postgres"):
        found += _rows(place.url)
    for url in (place.url, place.dispatch):
        if url is not None and url.startswith("redis"):
            found += _keys(url)
    return "\n".join(found)


def _rows(url: str) -> Iterator[str]:
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) "
            "FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in tables:
            for (row,) in connection.execute(f"SELECT row_to_json(t)::text FROM {table} t"):
                yield row


def _keys(url: str) -> Iterator[str]:
    raw = RawKeys(url)
    reads = {
        "string": ("GET",),
        "hash": ("HGETALL",),
        "set": ("SMEMBERS",),
        "zset": ("ZRANGE", "0", "-1"),
        "list": ("LRANGE", "0", "-1"),
        "stream": ("XRANGE", "-", "+"),
    }
    for name in raw.names():
        command, *bounds = reads[raw.ask("TYPE", name).decode()]
        yield f"{name} {raw.ask(command, name, *bounds)!r}"
    raw.close()


async def test_no_canary_is_left_in_the_store(place: Place) -> None:
    async with Penstock(**place.settings, clock=FakeClock()) as app:

        @app.job(max_retries=1, retry_delay=0, classify=[{KeyError: ErrorClass.NOT_FOUND}])
        async def tell(ctx: Context, how: str) -> None:
            ctx.log(f"log marker: {SECRETS}")
            ctx.progress(50, f"progress marker: {SECRETS}")
            if how == "raise":
                error = RuntimeError(f"error marker: {SECRETS}")
                error.add_note(f"note marker: {SECRETS}")
                raise error from ValueError(f"cause marker: {SECRETS}")
            outcomes = {
                "retry": Retry(after=0, reason=SECRETS),
                "snooze": Snooze(0, reason=SECRETS),
                "cancel": Cancel(SECRETS),
                "dead": Dead(SECRETS),
            }
            raise outcomes.get(how) or KeyError(ADDRESS)

        hows = ("raise", "retry", "snooze", "cancel", "dead", "key")
        jobs = {how: await tell.enqueue(how) for how in hows}
        await drain(app)
        waiting = await tell.options(delay=60).enqueue("raise")
        await app.cancel(waiting.id, SECRETS)
        await app.store.dead.resolve(
            [jobs["raise"].id], Resolution.IGNORED, notes=SECRETS, by="ann"
        )
        await app.controls.pause(queue="mail", reason=SECRETS, by="ann")
        held = await app.get(jobs["raise"].id)
        assert held.error is not None
        assert held.error.startswith("RuntimeError: error marker: [REDACTED_EMAIL]")
        assert held.progress_message is not None
    kept = everything_in(place)
    for marker in ("error marker", "note marker", "cause marker", "log marker"):
        assert marker in kept
    for canary in CANARIES:
        assert canary not in kept


async def test_payloads_and_results_pass_the_gate_where_the_settings_say_so(place: Place) -> None:
    settings = Settings(**place.settings, redact_payloads=True, redact_results=True)
    async with Penstock(settings=settings) as app:

        @app.job
        async def greet(name: str, count: int) -> dict[str, str]:
            return {"to": "bob@example.com", "said": name * count}

        handle = await greet.enqueue("ada@example.com", 2)
        await Worker(app, burst=True, upkeep=False).run()
        job = await app.get(handle.id)
        assert "example.com" not in job.payload + (job.result or "")
        assert await handle.result() == {
            "to": "[REDACTED_EMAIL]",
            "said": "[REDACTED_EMAIL][REDACTED_EMAIL]",
        }
