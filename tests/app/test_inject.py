from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from penstock import Context, Penstock, Status, inject

EVENTS: list[str] = []


async def database() -> AsyncIterator[str]:
    EVENTS.append("database opened")
    yield "database"
    EVENTS.append("database closed")


def cache() -> Iterator[str]:
    EVENTS.append("cache opened")
    yield "cache"
    EVENTS.append("cache closed")


@asynccontextmanager
async def session() -> AsyncIterator[str]:
    EVENTS.append("session opened")
    yield "session"
    EVENTS.append("session closed")


@contextmanager
def lock() -> Iterator[str]:
    EVENTS.append("lock opened")
    yield "lock"
    EVENTS.append("lock closed")


def broken() -> Iterator[str]:
    raise ConnectionError("no database today")
    yield "never"


async def test_resources_are_opened_once_and_closed_in_reverse_when_the_worker_stops(
    app: Penstock, drain: Any
) -> None:
    EVENTS.clear()

    @app.job
    async def one(number: int, db: str = inject(database), c: str = inject(cache)) -> str:
        return f"{number} {db} {c}"

    @app.job
    def two(ctx: Context, s: str = inject(session), k: str = inject(lock)) -> str:
        return f"{s} {k}"

    app.settings = app.settings.replace(concurrency=1)
    jobs = [await one.enqueue(1), await one.enqueue(2)]
    other = await two.options(priority=9).enqueue()
    await drain()
    assert [await job.result(timeout=30) for job in jobs] == [
        "1 database cache",
        "2 database cache",
    ]
    assert await other.result(timeout=30) == "session lock"
    names = ["database", "cache", "session", "lock"]
    assert [f"{n} opened" for n in names] + [f"{n} closed" for n in reversed(names)] == EVENTS


async def test_nothing_is_opened_that_no_job_asks_for(app: Penstock, drain: Any) -> None:
    EVENTS.clear()

    @app.job
    async def plain() -> None: ...

    @app.job
    async def never(db: str = inject(database)) -> None: ...

    await plain.enqueue()
    await drain()
    assert EVENTS == []


async def test_a_resource_is_no_argument_of_the_job(app: Penstock) -> None:
    @app.job
    async def report(day: str, db: str = inject(database)) -> None: ...

    job = await (await report.enqueue("monday")).get()
    assert job.payload == '{"day":"monday"}'


async def test_a_resource_that_cannot_be_opened_fails_the_job_and_is_tried_again(
    app: Penstock, drain: Any
) -> None:
    @app.job(max_retries=1)
    async def report(db: str = inject(broken)) -> None: ...

    job = await report.enqueue()
    await drain(through=60)
    found = await job.get()
    assert (found.status, found.attempts) == (Status.DEAD_LETTER, 2)
    assert "no database today" in str(found.error)
