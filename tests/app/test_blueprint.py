"""Parts of an application: registered without one, included into one or several."""

import pytest

from penstock import Blueprint, Context, Penstock, Settings
from penstock.model.errors import InvalidOption, NotIncluded
from penstock.testing import FakeClock, drain, in_memory


def mailing() -> tuple[Blueprint, list[str]]:
    """A blueprint whose handler says what it sent."""
    mail, sent = Blueprint(), list[str]()

    @mail.scheduled(cron="0 3 * * *")
    @mail.job(queue="mail", aliases=["post"], concurrency=3, breaker="smtp")
    async def send(ctx: Context, to: str = "everybody") -> str:
        sent.append(to)
        return ctx.id

    @mail.job(max_retries=7)
    async def sort() -> None: ...

    mail.breaker("smtp", failures=2)
    mail.limit(key="smtp", rate="10/s")
    return mail, sent


async def test_its_types_run_in_the_application_that_includes_it(app: Penstock) -> None:
    mail, sent = mailing()
    app.include(mail)
    async with app:
        handle = await mail.find_type("send").enqueue("ada")
        await app.enqueue_payload("post", '{"to": "bob"}')
        await drain(app)
        assert sent == ["ada", "bob"]
        assert await handle.result() == handle.id
        assert (await app.get(handle.id)).queue == "mail"


async def test_what_it_declares_is_declared_by_the_application(app: Penstock) -> None:
    mail, _ = mailing()
    app.include(mail)
    async with app:
        await app.declare()
        assert [one.name for one in await app.schedules.list()] == ["send"]
        limits = {(one.limit.scope, one.limit.name) for one in await app.controls.limits()}
        assert limits == {("type", "send"), ("type", "post"), ("key", "smtp")}
        [breaker] = await app.controls.breakers()
        assert (breaker.breaker.name, breaker.breaker.failures) == ("smtp", 2)


def test_the_settings_fill_in_what_its_authors_leave_open() -> None:
    mail, _ = mailing()
    app = Penstock(
        settings=Settings(url="sqlite:///:memory:", default_max_retries=1, default_timeout=9)
    )
    app.include(mail)
    assert app.find_type("send").defaults.max_retries == 1
    assert app.find_type("sort").defaults.max_retries == 7
    assert mail.find_type("send").defaults.timeout_ms == 9_000


async def test_two_applications_may_include_it_and_it_enqueues_by_the_last() -> None:
    mail, _ = mailing()
    with in_memory(clock=FakeClock()) as first, in_memory(clock=FakeClock()) as second:
        first.include(mail)
        second.include(mail)
        async with first, second:
            await mail.find_type("sort").enqueue()
            assert (len(await first.find()), len(await second.find())) == (0, 1)
            await first.find_type("sort").enqueue()
            assert (len(await first.find()), len(await second.find())) == (1, 1)


async def test_a_call_before_it_is_included_is_refused_with_what_to_do() -> None:
    mail, _ = mailing()
    with pytest.raises(NotIncluded, match=r"'sort' belongs to a blueprint.*app\.include"):
        await mail.find_type("sort").enqueue()


def test_a_name_that_is_taken_is_refused_and_nothing_is_included(app: Penstock) -> None:
    mail, _ = mailing()

    @app.job(name="sort")
    async def other() -> None: ...

    with pytest.raises(InvalidOption, match="no other job type has"):
        app.include(mail)
    assert list(app.types) == ["sort"]
    with pytest.raises(NotIncluded):
        _ = mail.find_type("sort").app


def test_a_limit_that_is_declared_otherwise_is_refused_and_nothing_is_included(
    app: Penstock,
) -> None:
    mail, _ = mailing()
    app.limit(key="smtp", rate="9/s")
    with pytest.raises(InvalidOption, match="declared once for key 'smtp'"):
        app.include(mail)
    assert app.types == {}


def test_nothing_is_registered_with_it_after_it_was_included(app: Penstock) -> None:
    mail, _ = mailing()
    app.include(mail)
    with pytest.raises(InvalidOption, match="before an application includes its blueprint"):

        @mail.job
        async def late() -> None: ...


def test_including_it_twice_changes_nothing(app: Penstock) -> None:
    mail, _ = mailing()
    app.include(mail)
    before = set(app.types)
    app.include(mail)
    assert set(app.types) == before
    assert sum(getattr(one, "name", "") == "send" for one in app.declarations) == 1


def test_what_is_no_blueprint_is_refused(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match="a Blueprint"):
        app.include("mail")  # type: ignore[arg-type]
