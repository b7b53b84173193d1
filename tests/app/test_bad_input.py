"""Whatever is wrong has an error of its own, and never takes the worker down."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import Context, JobFailed, Penstock, PenstockError, Status
from penstock.model.errors import InvalidArguments, InvalidOption, PayloadTooLarge
from penstock.testing import in_memory
from tests.support.places import on_any_store

NONSENSE = [
    "",
    "not json",
    "null",
    "[]",
    '"text"',
    "{}",
    '{"number": "one"}',
    '{"number": 1, "more": 2}',
    '{"number": ' + "[" * 50_000,
    '{"number": NaN}',
    b"\xff\xfe\x00",
]

# Rows of other stores are edited by hand in `tests/faults/test_corrupt_row.py`.
ON_A_FILE = pytest.mark.parametrize("kind_of_store", ["sqlite"])


@ON_A_FILE
@pytest.mark.parametrize("payload", NONSENSE, ids=range(len(NONSENSE)))
async def test_a_payload_edited_into_nonsense_is_a_dead_letter_and_its_siblings_run(
    app: Penstock, drain: Any, payload: str | bytes
) -> None:
    @app.job
    async def double(number: int) -> int:
        return 2 * number

    victim, sibling = await double.enqueue(1), await double.enqueue(2)
    await _edit(app, victim.id, payload)
    await drain()
    assert await sibling.result(timeout=30) == 4
    found = await victim.get()
    assert (found.status, found.attempts) == (Status.DEAD_LETTER, 1)
    assert f"The stored payload of job {victim.id} is not valid" in str(found.error)
    assert '"CorruptPayload"' in str(found.error_details)
    assert "Traceback" not in str(found.error_details)


async def test_a_payload_over_the_limit_is_refused_with_both_sizes(app: Penstock) -> None:
    @app.job
    async def keep(text: str) -> None: ...

    await keep.enqueue("x" * 1_000_000)
    with pytest.raises(PayloadTooLarge, match=r"1,100,011 bytes, over the limit of 1,048,576"):
        await keep.enqueue("x" * 1_100_000)
    with pytest.raises(PayloadTooLarge):
        await keep.enqueue("é" * 600_000)


async def test_the_limit_is_a_setting(app: Penstock) -> None:
    app.settings = app.settings.replace(payload_limit=100)

    @app.job
    async def keep(text: str) -> None: ...

    await keep.enqueue("x" * 80)
    with pytest.raises(PayloadTooLarge, match="limit of 100"):
        await keep.enqueue("x" * 100)


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_result_over_the_limit_is_a_dead_letter(
    app: Penstock, drain: Any, kind: str
) -> None:
    app.settings = app.settings.replace(payload_limit=100)

    async def coroutine() -> str:
        return "é" * 80

    def plain() -> str:
        return "é" * 80

    handler: Any = app.job(coroutine if kind == "async" else plain)
    job = await handler.enqueue()
    await drain()
    with pytest.raises(JobFailed, match=r"The result of job type .* over the limit of 100"):
        await job.result(timeout=30)


async def test_a_hand_written_payload_nested_too_deep_is_refused(app: Penstock) -> None:
    @app.job
    async def keep(thing: Any) -> None: ...

    await app.enqueue_payload("keep", '{"thing": ' + "[" * 63 + "]" * 63 + "}")
    await app.enqueue_payload("keep", '{"thing": "' + "[{" * 500 + '\\"["}')
    for levels in (64, 100_000):
        with pytest.raises(InvalidArguments, match="at most 64 levels of nesting"):
            await app.enqueue_payload("keep", '{"thing": ' + "[" * levels + "]" * levels + "}")


@on_any_store
@pytest.mark.parametrize("payload", ["", "nonsense", "[1]", '{"number": "one"}', "{}", "\ud800"])
async def test_a_hand_written_payload_is_checked_like_any_other_call(
    app: Penstock, payload: str
) -> None:
    @app.job
    async def double(number: int) -> None: ...

    with pytest.raises(InvalidArguments, match="'double'"):
        await app.enqueue_payload("double", payload)
    with pytest.raises(InvalidOption, match="priority"):
        await app.enqueue_payload("double", '{"number": 1}', priority=11)


def _unserializable() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return [object(), lambda: None, {object(): 1}, 1j, loop, {"deep": {1, (2, object())}}, "\ud800"]


@on_any_store
@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_result_json_cannot_hold_is_a_dead_letter_that_names_its_type(
    app: Penstock, drain: Any, which: int, kind: str
) -> None:
    async def coroutine() -> Any:
        return _unserializable()[which]

    def plain() -> Any:
        return _unserializable()[which]

    handler: Any = app.job(name="task")(coroutine if kind == "async" else plain)
    job = await handler.enqueue()
    await drain()
    found = await job.get()
    assert (found.status, found.attempts) == (Status.DEAD_LETTER, 1)
    assert f"returned a {type(_unserializable()[which]).__name__}" in str(found.error)


async def test_a_result_that_does_not_fit_its_annotation_is_a_dead_letter_that_says_so(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def liar() -> int:
        return "text"  # type: ignore[return-value]

    job = await liar.enqueue()
    await drain()
    with pytest.raises(JobFailed, match=r"dead_letter.*return annotation.*int"):
        await job.result(timeout=30)


async def test_a_handler_that_exits_fails_its_job_and_not_the_worker(
    app: Penstock, drain: Any
) -> None:
    @app.job(max_retries=0)
    async def leave() -> None:
        raise SystemExit(3)

    @app.job(max_retries=0)
    def interrupt() -> None:
        raise KeyboardInterrupt

    @app.job(max_retries=0)
    def stop_iteration() -> None:
        raise StopIteration

    @app.job
    async def innocent() -> str:
        return "fine"

    bad = [await handler.enqueue() for handler in (leave, interrupt, stop_iteration)]
    good = await innocent.enqueue()
    await drain()
    assert await good.result(timeout=30) == "fine"
    errors = []
    for job in bad:
        assert (await job.get()).status is Status.DEAD_LETTER
        errors += [execution.error_code for execution in await app.executions(job.id)]
    assert errors == ["SystemExit", "KeyboardInterrupt", "RuntimeError"]


@ON_A_FILE
async def test_columns_edited_by_hand_do_not_take_the_worker_down(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def echo(ctx: Context) -> Any:
        return ctx.checkpoint

    edits = {"checkpoint": "not json", "tags": "nonsense", "metadata": "[", "error": b"\xff"}
    jobs = []
    for column, value in edits.items():
        job = await echo.options(max_retries=0).enqueue()
        await _edit(app, job.id, value, column)
        jobs.append(job)
    innocent = await echo.enqueue()
    await drain()
    assert await innocent.result(timeout=30) is None
    for job in jobs:
        (row,) = await app.store.reader.get([job.id])
        assert row.status.terminal


@pytest.mark.parametrize("value", ["\ud800", 10**300, ["a"]], ids=["surrogate", "huge", "list"])
async def test_what_a_store_cannot_hold_or_look_for_is_refused_in_a_sentence(
    app: Penstock, value: Any
) -> None:
    @app.job
    async def keep() -> None: ...

    async def created_by_it() -> None:
        await keep.options(created_by=value).enqueue()

    later = await keep.options(delay=60).enqueue()
    for refused in (
        app.cancel(value),
        app.executions(value),
        app.schedules.get(value),
        app.dead.show(value),
        created_by_it(),
    ):
        with pytest.raises(InvalidOption, match="but it must be"):
            await refused
    assert [job.id for job in await app.find()] == [later.id]


def test_an_application_without_types_cannot_work() -> None:
    from penstock import Worker

    with in_memory() as app, pytest.raises(InvalidOption, match=r"at least one @app\.job"):
        Worker(app)


async def _edit(app: Penstock, job_id: str, value: Any, column: str = "payload") -> None:
    database = app.store._db  # type: ignore[attr-defined]
    await database.write(
        lambda tx: tx.connection.execute(
            f"UPDATE jobs SET {column} = CAST(? AS TEXT) WHERE id = ?", (value, job_id)
        )
    )


WRONG_KINDS: dict[str, Callable[[Penstock, str], Awaitable[Any]]] = {
    "get": lambda app, _: app.get([]),  # type: ignore[arg-type]
    "enqueue_many": lambda app, _: app.enqueue_many(5),  # type: ignore[call-overload]
    "pause": lambda app, _: app.controls.pause(queue="mail", reason=5),  # type: ignore[arg-type]
    "zone": lambda app, _: app.schedule("n", app.find_type("double"), every=5, zone=[]),  # type: ignore[arg-type]
    "replay": lambda app, _: app.dead.replay("ab", canary="x"),  # type: ignore[arg-type]
    "amend": lambda app, job_id: app.dead.amend(job_id, 5),  # type: ignore[arg-type]
    "resolve": lambda app, _: app.dead.resolve(5),  # type: ignore[arg-type]
}


@on_any_store
@pytest.mark.parametrize("name", WRONG_KINDS)
async def test_a_value_of_the_wrong_kind_is_one_sentence(app: Penstock, name: str) -> None:
    @app.job
    async def double(number: int) -> int:
        return 2 * number

    job = await double.enqueue(1)
    with pytest.raises(PenstockError, match="must be"):
        await WRONG_KINDS[name](app, job.id)
