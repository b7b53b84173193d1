import threading
from dataclasses import dataclass
from typing import Any

import pytest

from penstock import (
    Cancel,
    Context,
    JobCancelled,
    JobFailed,
    Penstock,
    Retry,
    Settings,
    Snooze,
    inject,
)
from penstock.model.errors import InvalidArguments, ResultNotSerializable
from penstock.testing import eager


@dataclass
class Point:
    x: int


@pytest.fixture
def app() -> Penstock:
    """Never opened: eager mode needs no store."""
    return Penstock("sqlite:///:memory:", settings=Settings())


async def test_an_eager_enqueue_has_run_the_handler_when_it_returns(app: Penstock) -> None:
    ran: list[Any] = []

    @app.job
    async def move(point: Point, by: int = 1) -> Point:
        ran.append(point)
        return Point(point.x + by)

    given = Point(1)
    with eager(app):
        job = await move.options(delay=3600, key="k").enqueue(given)
    assert ran == [given]
    assert ran[0] is not given  # it was encoded and decoded on the way
    assert await job.result() == Point(2)


def test_an_eager_enqueue_without_an_event_loop_runs_the_handler_too(app: Penstock) -> None:
    ran: list[str] = []

    @app.job
    def note(word: str) -> str:
        ran.append(word)
        return word

    app.sync.enqueue(note.new("stored"))  # so that the depth of its queue is known
    with eager(app):
        job = app.sync.enqueue(note.new("eager"))
    assert ran == ["eager"]
    assert len(app.sync.find()) == 1
    assert job.created
    app.sync.close()


async def test_eager_mode_ends_with_its_block(app: Penstock) -> None:
    ran: list[str] = []

    @app.job
    async def task() -> None:
        ran.append("ran")

    with pytest.raises(KeyError), eager(app):
        raise KeyError
    async with app:
        await task.enqueue()
    assert ran == []


async def test_sync_and_process_handlers_run_in_this_process(app: Penstock) -> None:
    @app.job
    def in_thread() -> str:
        return threading.current_thread().name

    @app.job(run_in="process")
    def in_process() -> str:
        return threading.current_thread().name

    with eager(app):
        names = [await (await handler.enqueue()).result() for handler in (in_thread, in_process)]
    assert all(name.startswith("penstock-job") for name in names)


async def test_eager_arguments_are_checked(app: Penstock) -> None:
    @app.job
    async def move(point: Point) -> None: ...

    with eager(app), pytest.raises(InvalidArguments, match="'point'"):
        await move.enqueue("here")  # type: ignore[arg-type]


async def test_an_eager_failure_is_not_retried_and_raises_at_the_result(app: Penstock) -> None:
    ran: list[int] = []

    @app.job(max_retries=5)
    async def fail(outcome: str) -> Any:
        ran.append(1)
        match outcome:
            case "error":
                raise ConnectionError("no line")
            case "retry":
                raise Retry(after=1)
            case "snooze":
                return Snooze(1, reason="not yet")
            case "cancel":
                raise Cancel("withdrawn")
            case _:
                return object()

    with eager(app):
        jobs = {word: await fail.enqueue(word) for word in ("error", "retry", "snooze", "cancel")}
        unserializable = await fail.enqueue("object")
    with pytest.raises(JobFailed, match="no line"):
        await jobs["error"].result()
    with pytest.raises(JobFailed, match="retry"):
        await jobs["retry"].result()
    with pytest.raises(JobFailed, match="not yet"):
        await jobs["snooze"].result()
    with pytest.raises(JobCancelled, match="withdrawn"):
        await jobs["cancel"].result()
    with pytest.raises(JobFailed, match="cannot be stored as JSON"):
        await unserializable.result()
    assert len(ran) == 5
    assert ResultNotSerializable


async def test_children_hooks_middleware_and_resources_work_eagerly(app: Penstock) -> None:
    heard: list[Any] = []

    def database() -> Any:
        heard.append("opened")
        yield "db"
        heard.append("closed")

    app.on_progress(lambda ctx, percent, message: heard.append(percent))

    @app.middleware
    async def wrap(ctx: Context, call_next: Any) -> Any:
        return f"<{await call_next()}>"

    @app.job
    async def child(parent: str) -> str:
        return parent

    @app.job
    async def parent(ctx: Context, db: str = inject(database)) -> str:
        ctx.progress(50)
        ctx.log("half way")
        await ctx.save_checkpoint(1)
        return str(await (await ctx.enqueue(child.new(db))).result())

    with eager(app):
        job: Any = await parent.enqueue()
        many = await app.enqueue_many([child.new("a"), child.new("b")])
    assert await job.result() == "<<db>>"
    assert [await each.result() for each in many] == ["<a>", "<b>"]
    assert heard == ["opened", 50, "closed"]
    assert [line[2] for report in job.reports for line in report.logs] == ["half way"]
