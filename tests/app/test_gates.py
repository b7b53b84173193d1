"""Gates of extensions: asked at every way in, and named by `explain`."""

import pytest
from msgspec.structs import replace

from examples.links import check, extension
from penstock import Context, Penstock, Settings, Worker
from penstock.extension import Asking, Way
from penstock.model.errors import NotAdmitted
from penstock.model.explain import ReasonKind
from penstock.model.states import Status
from penstock.testing import FakeClock
from penstock.upkeep.schedules import fire_due
from tests.support.places import Place

URL = "http://127.0.0.1:1/"


class Gate:
    """Keeps a tenant out, and notes who asked."""

    def __init__(self) -> None:
        self.asked: list[Asking] = []
        self.closed: set[str] = {"acme"}

    def __call__(self, _: Penstock, asking: Asking) -> str | None:
        self.asked.append(asking)
        return "Not on Sundays." if asking.tenant_id in self.closed else None


async def test_a_gate_is_asked_at_every_way_in(place: Place, clock: FakeClock) -> None:
    gate = Gate()
    closed = replace(extension, gates=(gate,))
    settings = Settings(**place.settings)
    async with Penstock(settings=settings, extensions=[closed], clock=clock) as app:

        @app.job
        async def parent(ctx: Context) -> None:
            await ctx.enqueue(check.new("", URL))
            with pytest.raises(NotAdmitted):
                await ctx.enqueue(check.options(tenant="acme").new("", URL))

        handle = await check.enqueue("", URL)
        with pytest.raises(NotAdmitted, match=r"by 'links': Not on Sundays\.$"):
            await check.options(tenant="acme").enqueue("", URL)
        await app.cancel(handle.id)
        await app.requeue(handle.id)
        await parent.enqueue()
        await Worker(app, types=["parent"], burst=True, upkeep=False).run()
        assert (await app.find(type="parent"))[0].status is Status.COMPLETED
        await app.schedule("often", check.new("", URL), every=60)
        clock.advance(seconds=61)
        before = len(gate.asked)
        assert await fire_due(app) == 1
        assert [asked.way for asked in gate.asked[before:]] == [Way.SCHEDULE]
        assert {asked.way for asked in gate.asked} == set(Way)


async def test_a_tick_that_is_kept_out_passes_and_the_schedule_goes_on(
    place: Place, clock: FakeClock
) -> None:
    gate = Gate()
    closed = replace(extension, gates=(gate,))
    settings = Settings(**place.settings)
    async with Penstock(settings=settings, extensions=[closed], clock=clock) as app:
        await app.schedule("often", check.new("", URL), every=60)
        gate.closed = {""}
        clock.advance(seconds=61)
        assert await fire_due(app) == 0
        gate.closed = set()
        clock.advance(seconds=60)
        assert await fire_due(app) == 1


async def test_explain_says_that_a_gate_would_keep_a_dead_job_out(place: Place) -> None:
    gate = Gate()
    gate.closed = set()
    closed = replace(extension, gates=(gate,))
    async with Penstock(settings=Settings(**place.settings), extensions=[closed]) as app:
        handle = await check.enqueue("", URL)
        await app.cancel(handle.id)
        gate.closed = {""}
        reasons = (await app.explain(handle.id)).reasons
        [kept_out] = [each for each in reasons if each.kind is ReasonKind.NOT_ADMITTED]
        assert "Not on Sundays" in kept_out.sentence
        with pytest.raises(NotAdmitted):
            await app.requeue(handle.id)
