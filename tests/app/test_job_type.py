import inspect
from typing import Any

import pytest

from penstock import Context, Penstock
from penstock.model.errors import InvalidOption, UnknownType
from penstock.testing import assert_enqueued
from tests.support.places import on_any_store


def test_a_registered_function_can_still_be_called(app: Penstock) -> None:
    @app.job
    def resize(path: str, width: int) -> str:
        """Make it smaller."""
        return f"{path}@{width}"

    assert resize("a.png", 100) == "a.png@100"
    assert resize.__name__ == "resize"
    assert resize.__doc__ == "Make it smaller."
    assert list(inspect.signature(resize).parameters) == ["path", "width"]


async def test_a_registered_coroutine_function_can_still_be_awaited(app: Penstock) -> None:
    @app.job(queue="mail")
    async def send(ctx: Context, to: str) -> tuple[Any, str]:
        return ctx, to

    ctx: Any = object()
    assert await send(ctx, "a@example.com") == (ctx, "a@example.com")


async def test_a_handler_takes_the_context_first_or_not_at_all(app: Penstock, drain: Any) -> None:
    @app.job
    async def with_context(ctx: Context, word: str) -> str:
        return f"{ctx.attempt} {word}"

    @app.job
    def quoted(ctx: "Context", word: str) -> str:
        return f"{ctx.fence} {word}"

    @app.job
    async def without(word: str) -> str:
        return word

    jobs = [await t.enqueue("hi") for t in (with_context, quoted, without)]
    await drain()
    assert [await job.result(timeout=30) for job in jobs] == ["1 hi", "1 hi", "hi"]


def test_a_context_anywhere_else_is_refused(app: Penstock) -> None:
    async def late(word: str, ctx: Context) -> None: ...

    with pytest.raises(InvalidOption, match="context first"):
        app.job(late)


async def test_a_type_has_its_explicit_name_and_not_the_functions(app: Penstock) -> None:
    @app.job(name="mail.send")
    async def send() -> None: ...

    job = await send.enqueue()
    assert (await job.get()).type == "mail.send"
    with pytest.raises(UnknownType, match=r"'send'.*mail\.send"):
        app.find_type("send")


async def test_jobs_enqueued_under_an_older_name_run(app: Penstock, drain: Any) -> None:
    @app.job(name="new", aliases=["old", "older"])
    async def renamed(number: int) -> int:
        return number + 1

    job = await app.enqueue_payload("old", '{"number": 1}')
    await drain()
    assert await job.result(timeout=30) == 2


async def test_a_job_stored_under_an_alias_is_found_by_its_type(app: Penstock, drain: Any) -> None:
    old = Penstock("sqlite:///:memory:")
    old.__dict__["store"] = app.store

    @old.job(name="old")
    async def before() -> None: ...

    @app.job(name="new", aliases=["old"])
    async def renamed() -> str:
        return "ran"

    await before.enqueue()
    job = await assert_enqueued(app, renamed)
    await drain()
    assert await (await app.handle(job.id)).result(timeout=30) == "ran"


def test_two_functions_cannot_share_a_name(app: Penstock) -> None:
    @app.job(name="same")
    async def one() -> None: ...

    async def other() -> None: ...

    with pytest.raises(InvalidOption, match=r"no other job type has .*one"):
        app.job(name="same")(other)


@on_any_store
@pytest.mark.parametrize("name", ["", "has space", "-dash", "é", "x" * 129, "semi;colon"])
def test_a_bad_name_of_a_type_or_a_queue_is_refused(app: Penstock, name: str) -> None:
    async def handler() -> None: ...

    with pytest.raises(InvalidOption, match="name"):
        app.job(queue=name)(handler)
    if name:
        with pytest.raises(InvalidOption, match="name"):
            app.job(name=name)(handler)
        with pytest.raises(InvalidOption, match="name"):
            app.job(aliases=[name])(handler)


def test_run_in_must_fit_the_kind_of_function(app: Penstock) -> None:
    def plain() -> None: ...

    async def coroutine() -> None: ...

    with pytest.raises(InvalidOption, match="run_in"):
        app.job(run_in="loop")(plain)
    with pytest.raises(InvalidOption, match="run_in"):
        app.job(run_in="thread")(coroutine)
    with pytest.raises(InvalidOption, match="run_in"):
        app.job(run_in="gpu")(plain)  # type: ignore[call-overload]


@on_any_store
@pytest.mark.parametrize(
    "registration", [{"retry_cap": 0}, {"retry_cap": 4000}, {"lease": 0}, {"lease": -1}]
)
def test_a_bad_registration_is_refused(app: Penstock, registration: dict[str, Any]) -> None:
    async def handler() -> None: ...

    with pytest.raises(InvalidOption, match=next(iter(registration))):
        app.job(**registration)(handler)


@on_any_store
@pytest.mark.parametrize("name", ["delay", "apply_async", "send"])
def test_who_comes_from_elsewhere_is_told_the_word_for_it(app: Penstock, name: str) -> None:
    @app.job
    async def pack() -> None: ...

    with pytest.raises(AttributeError, match="enqueued with `enqueue`"):
        getattr(pack, name)


def test_a_misspelt_option_of_a_type_is_told_the_options_of_types(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match=r"no option 'run_inn'; did you mean 'run_in'\?"):
        app.job(run_inn="process")(print)
