from penstock import Penstock
from penstock.upkeep.sweeps import Declarations
from tests.support.redis_raw import RawKeys


def declare_some(app: Penstock) -> Penstock:
    app.limit(key="openai", concurrency=3)

    @app.scheduled(every=3600)
    @app.job(breaker="smtp")
    async def report() -> None: ...

    return app


async def declared(app: Penstock) -> tuple[list[str], list[str], list[str]]:
    controls = app.store.controls
    return (
        [state.limit.name for state in await controls.limits()],
        [state.breaker.name for state in await controls.breakers()],
        [schedule.name for schedule in await app.store.schedules.known()],
    )


async def test_what_the_application_declares_is_back_after_its_store_was_emptied(
    valkey_url: str,
) -> None:
    app = declare_some(Penstock(valkey_url))
    other = declare_some(Penstock(valkey_url))
    async with app, other:
        await app.declare()
        passes = [Declarations(app), Declarations(other)]
        for each in passes:
            await each.run_once()
        before = await declared(app)
        empty(valkey_url)
        assert await declared(app) == ([], [], [])
        for each in passes:
            await each.run_once()
        assert await declared(app) == before == (["openai"], ["smtp"], ["report"])
        assert await app.store.exists()


async def test_every_application_of_an_emptied_store_declares_its_own(valkey_url: str) -> None:
    first, second = Penstock(valkey_url), Penstock(valkey_url)
    first.limit(key="one", concurrency=1)
    second.limit(key="two", concurrency=2)
    for app in (first, second):

        @app.job
        async def task() -> None: ...

    async with first, second:
        passes = [Declarations(first), Declarations(second)]
        for each in passes:
            await each.run_once()
        empty(valkey_url)
        for each in passes:
            await each.run_once()
        assert (await declared(first))[0] == ["one", "two"]


async def test_what_an_operator_took_away_stays_away(app: Penstock) -> None:
    declare_some(app)
    await app.declare()
    watch = Declarations(app)
    await watch.run_once()
    await app.schedules.remove("report")
    for limit in await app.store.controls.limits():
        found = limit.limit
        await app.store.controls.remove_limit(found.scope, found.name, found.kind)
    await watch.run_once()
    assert await declared(app) == ([], ["smtp"], [])


def empty(url: str) -> None:
    """What an operator's FLUSHALL leaves of one namespace."""
    raw = RawKeys(url)
    for name in raw.names():
        raw.ask("DEL", name)
    raw.close()
