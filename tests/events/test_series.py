"""Series: what is recorded is there, by time and labels, once, and goes with its session."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode

from penstock import Penstock
from penstock.events.consumer import Consumer, consumer_of
from penstock.events.event import Event, NewEvent, Session
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from penstock.events.series import Flushing, Kind, Series, prune
from penstock.events.series_mirror import mirror_series
from penstock.extension import Extension
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreUnavailable
from penstock.testing.clock import FakeClock
from proof.servers import RedisServer
from tests.events.streams import stream_of, streaming
from tests.support.places import Place, find_place

TOKENS = Series(name="tokens", kind=Kind.COUNTER, labels=("model",))
ACTIVE = Series(name="active", kind=Kind.GAUGE)
LATENCY = Series(name="latency", kind=Kind.HISTOGRAM, labels=("tool",), every=10, keep=60)
ACCEPTED = Series(name="accepted", kind=Kind.WINDOW, size=3)
EXTENSION = Extension(name="shop", adds={"events.series": (TOKENS, ACTIVE, LATENCY, ACCEPTED)})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def app(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    async with Penstock(place.url, extensions=[EXTENSION], clock=clock) as made:
        yield made


async def test_a_counter_adds_up_by_labels(app: Penstock) -> None:
    for model, tokens in (("small", 2), ("large", 5), ("small", 3)):
        app.series.record("tokens", tokens, model=model)
    assert await app.series.flush() == 2
    app.series.record("tokens", 1, model="small")
    await app.series.flush()
    found = {
        each.labels["model"]: (each.count, each.total) for each in await app.series.read("tokens")
    }
    assert found == {"small": (3, 6.0), "large": (1, 5.0)}
    [small] = await app.series.read("tokens", model="small")
    assert (small.total, small.mean) == (6, 2)


async def test_of_a_gauge_the_last_value_stands(app: Penstock, clock: FakeClock) -> None:
    for value in (5, 7):
        app.series.record("active", value)
    await app.series.flush()
    clock.advance(120)
    app.series.record("active", 2)
    await app.series.flush()
    assert [each.last for each in await app.series.read("active")] == [2]
    assert [each.total for each in await app.series.points("active", seconds=600)] == [7, 2]


async def test_a_histogram_knows_percentiles_within_a_tenth(app: Penstock) -> None:
    for n in range(1, 101):
        app.series.record("latency", n, tool="edit")
    await app.series.flush()
    [found] = await app.series.read("latency")
    assert (found.count, found.total) == (100, 5_050)
    for told, exact in ((found.p50, 50), (found.p95, 95), (found.p99, 99)):
        assert told == pytest.approx(exact, rel=0.1)


async def test_a_window_slides_over_the_last_values(app: Penstock, clock: FakeClock) -> None:
    for value in (0, 0, 1, 1):
        app.series.record("accepted", value)
        clock.advance(1)
    await app.series.flush()
    [found] = await app.series.read("accepted")
    assert (found.count, found.total, found.last) == (3, 2, 1)
    app.series.record("accepted", 1)
    await app.series.flush()
    assert [each.mean for each in await app.series.read("accepted")] == [1]


async def test_a_span_of_time_is_read_without_what_was_before(
    app: Penstock, clock: FakeClock
) -> None:
    app.series.record("latency", 100, tool="edit")
    await app.series.flush()
    clock.advance(40)
    app.series.record("latency", 3, tool="edit")
    await app.series.flush()
    assert [each.total for each in await app.series.read("latency", seconds=20)] == [3]
    assert [each.total for each in await app.series.read("latency")] == [103]


async def test_what_is_older_than_it_is_kept_goes(app: Penstock, clock: FakeClock) -> None:
    app.series.record("latency", 100, tool="edit")
    app.series.record("active", 1)
    await app.series.flush()
    clock.advance(120)
    await prune(app)
    assert await app.series.read("latency") == []
    assert len(await app.series.read("active")) == 1


async def test_tenants_are_told_apart(app: Penstock) -> None:
    app.series.record("tokens", 1, tenant="acme", model="m")
    app.series.record("tokens", 2, tenant="other", model="m")
    await app.series.flush()
    assert [each.total for each in await app.series.read("tokens", tenant="acme")] == [1]
    assert [each.total for each in await app.series.read("tokens")] == [3]


async def test_it_waits_in_memory_while_the_store_is_away(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(work: Any) -> Any:
        raise StoreUnavailable("here", "gone")

    app.series.record("tokens", 2, model="m")
    app.series.record("accepted", 1)
    with monkeypatch.context() as patched:
        patched.setattr(app, "transact", away)
        with pytest.raises(StoreUnavailable):
            await app.series.flush()
        app.series.record("tokens", 3, model="m")
        await Flushing(app).run_once()
    await Flushing(app).run_once()
    assert [each.total for each in await app.series.read("tokens")] == [5]
    assert [each.count for each in await app.series.read("accepted")] == [1]


async def test_what_waits_is_written_before_the_application_closes(place: Place) -> None:
    app = Penstock(place.url, extensions=[EXTENSION])
    async with app:
        app.series.record("active", 3)
    async with app:
        assert [each.last for each in await app.series.read("active")] == [3]


@pytest.mark.parametrize("kind", ["app", "tx"])
async def test_what_was_not_declared_is_refused_by_name(app: Penstock, kind: str) -> None:
    def work(tx: Any) -> None:
        recording = app.series if kind == "app" else tx.events.series
        with pytest.raises(InvalidOption, match="one of: accepted, active"):
            recording.record("fish")
        with pytest.raises(InvalidOption, match="those of tokens: model"):
            recording.record("tokens", modell="m")

    await app.transact(work)


class Tokens:
    """Records what events cost, in the commit that moves the cursor."""

    def apply(self, tx: Any, events: list[Event]) -> None:
        for event in events:
            tx.series.record("tokens", event.payload["tokens"], event=event, model="m")
            tx.series.record("accepted", event.payload["tokens"], event=event)

    def reset(self, tx: Any, session: Session) -> None:
        """Nothing but series, which go by themselves."""


@pytest.fixture
def consumer(app: Penstock) -> Consumer:
    made = consumer_of(Tokens(), name="tokens")
    app.consumer.add(made)
    return made


async def test_a_rebuild_records_everything_once(app: Penstock, consumer: Consumer) -> None:
    told = [
        NewEvent(event_type="tool_use", session_id=session, payload={"tokens": tokens})
        for session, tokens in (("a", 1), ("b", 2), ("a", 4))
    ]
    await app.events.append_many(told)
    await catch_up(app)
    before = await app.series.read("tokens"), await app.series.read("accepted")
    assert [each.total for each in before[0]] == [7]
    assert await rebuild(app, consumer) == 2
    assert (await app.series.read("tokens"), await app.series.read("accepted")) == before


async def test_another_consumer_keeps_its_own_figures_of_a_session(app: Penstock) -> None:
    for name in ("one", "two"):
        app.consumer.add(consumer_of(Tokens(), name=name))
    await app.events.append("tool_use", session_id="a", payload={"tokens": 3})
    await catch_up(app)
    await rebuild(app, app.consumer.get("one"), Session("", "", "a"))
    assert [each.total for each in await app.series.read("tokens")] == [6]


async def test_figures_of_an_event_belong_to_its_time(app: Penstock, consumer: Consumer) -> None:
    at = app.store.clock.now() - 3_600_000
    told = NewEvent(event_type="x", event_id="e", timestamp=at, payload={"tokens": 3})
    await app.events.append(told)
    await catch_up(app)
    assert await app.series.read("tokens", seconds=600) == []
    assert [each.at for each in await app.series.points("tokens", seconds=7_200)] == [at]


async def test_a_redis_beside_it_has_the_same_figures_and_is_given_what_it_missed(
    place: Place, tmp_path: Path
) -> None:
    with RedisServer() as server:
        url = f"{server.url}?namespace=shop"
        async with streaming(place, url, tmp_path) as app:
            app.series.declare(TOKENS, ACTIVE, LATENCY, ACCEPTED)
            app.series.record("tokens", 2, model="m")
            app.series.record("active", 9)
            for value in (1, 0):
                app.series.record("accepted", value)
                app.series.record("latency", 20, tool="edit")
            await app.series.flush()
            await mirror_series(app)
            assert await mirrored(app, "tokens") == {'{"model":"m"}': "2.0"}
            assert await mirrored(app, "active") == {"{}": "9.0"}
            [latency] = (await mirrored(app, "latency")).values()
            assert decode(latency)["p95"] == pytest.approx(20, rel=0.1)
            assert decode((await mirrored(app, "accepted"))["{}"])["count"] == 2

            await stream_of(app).ask("FLUSHALL")
            app.series.record("tokens", 3, model="m")
            server.stop()
            await app.series.flush()
            await mirror_series(app)
            server.start()
            await mirror_series(app)
            assert await mirrored(app, "tokens") == {'{"model":"m"}': "5.0"}
            assert await mirrored(app, "active") == {"{}": "9.0"}


async def mirrored(app: Penstock, name: str) -> dict[str, str]:
    stream = stream_of(app)
    for key in await stream.ask("KEYS", stream.key(f"telemetry:series:{name}*")):
        flat = [each.decode() for each in await stream.ask("HGETALL", key)]
        return dict(zip(flat[::2], flat[1::2], strict=True))
    return {}
