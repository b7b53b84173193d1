import pytest

from penstock import Penstock
from penstock.operate.check_payloads import PayloadCheck, TypeCheck
from penstock.store.contract import Store
from penstock.testing import drain
from proof.conformance.build import (
    an_edge,
    cancelled,
    dead_job,
    end,
    enqueue,
    enqueue_after,
    running,
)


def deployed(store: Store) -> Penstock:
    """The next version of an application, on the store the current one left."""
    app = Penstock()
    app.__dict__["store"] = store

    @app.job(name="send", aliases=["mail"])
    async def send(to: str, copies: int = 1) -> None: ...

    @app.job(name="total")
    async def total(rows: list[int]) -> int:
        return sum(rows)

    return app


def of_type(found: PayloadCheck, name: str) -> TypeCheck:
    return next(each for each in found.jobs if each.type == name)


async def test_an_empty_store_fits(app: Penstock) -> None:
    found = await deployed(app.store).check_payloads()
    assert (found.fits, found.checked, found.jobs, found.schedules) == (True, 0, [], [])


async def test_what_fits_is_counted_by_type_and_alias(app: Penstock) -> None:
    await enqueue(app.store, type="send", payload='{"to":"ann"}')
    await enqueue(app.store, type="send", payload='{"to":"bob","copies":2}', delay_ms=60_000)
    await enqueue(app.store, type="mail", payload='{"to":"cat"}')
    found = await deployed(app.store).check_payloads()
    assert found.fits
    assert [(each.type, each.fitting) for each in found.jobs] == [("mail", 1), ("send", 2)]


async def test_what_does_not_fit_is_told_with_examples(app: Penstock) -> None:
    wrong = ("{}", '{"to":1}', '{"to":"ann","colour":"red"}', '"spoilt"')
    for payload in wrong:
        await enqueue(app.store, type="send", payload=payload)
    await enqueue(app.store, type="send", payload='{"to":"ann"}')
    found = await deployed(app.store).check_payloads(examples=2)
    send = of_type(found, "send")
    assert not found.fits
    assert (send.known, send.fitting, send.unfit) == (True, 1, 4)
    assert [example.problem for example in send.examples] == [
        "Argument 'to' of job type 'send' is wrong: expected str, got nothing.",
        "Argument 'to' of job type 'send' is wrong: expected str, got int.",
    ]


async def test_a_type_the_code_lacks_is_told(app: Penstock) -> None:
    await enqueue(app.store, type="gone")
    gone = of_type(await deployed(app.store).check_payloads(), "gone")
    assert (gone.known, gone.fitting, gone.unfit) == (False, 0, 1)
    assert "No job type is named 'gone'" in gone.examples[0].problem


async def test_only_what_waits_is_checked(app: Penstock) -> None:
    await dead_job(app.store, type="gone")
    await end(app.store, await enqueue(app.store, type="gone"), cancelled)
    await running(app.store, type="gone")
    assert (await deployed(app.store).check_payloads()).checked == 0


async def test_an_argument_that_a_parent_will_give_may_be_missing(app: Penstock) -> None:
    parent = await enqueue(app.store, type="send", payload='{"to":"ann"}')
    data = an_edge(parent, kind="data", argument="rows")
    await enqueue_after(app.store, data, type="total")
    assert (await deployed(app.store).check_payloads()).fits


async def test_an_argument_that_no_parent_will_give_may_not(app: Penstock) -> None:
    parent = await enqueue(app.store, type="send", payload='{"to":"ann"}')
    await enqueue_after(app.store, parent, type="total")
    found = await deployed(app.store).check_payloads()
    assert of_type(found, "total").unfit == 1


async def test_an_argument_that_a_parent_will_give_and_the_code_no_longer_takes_is_told(
    app: Penstock,
) -> None:
    parent = await enqueue(app.store, type="send", payload='{"to":"ann"}')
    data = an_edge(parent, kind="data", argument="lines")
    await enqueue_after(app.store, data, type="total", payload='{"rows":[1]}')
    [example] = of_type(await deployed(app.store).check_payloads(), "total").examples
    assert "'lines'" in example.problem


async def test_an_argument_that_an_earlier_try_of_the_parent_gave_is_no_problem(
    app: Penstock,
) -> None:
    @app.job
    async def numbers() -> list[int]:
        return [1, 2]

    job = await numbers.enqueue()
    data = an_edge(job.id, kind="data", argument="rows")
    child = await enqueue_after(app.store, data, type="total", payload='{"rows":[]}')
    found = await deployed(app.store).check_payloads()
    assert of_type(found, "total").fitting == 1
    await drain(app)
    assert (await app.get(child)).payload == '{"rows":[1,2]}'


async def test_every_page_is_looked_at(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.operate.check_payloads.PAGE", 2)
    seen: list[int] = []
    for _ in range(5):
        await enqueue(app.store, type="send", payload='{"to":"ann"}')
    found = await deployed(app.store).check_payloads(progress=seen.append)
    assert (found.checked, seen) == (5, [2, 4, 5])


async def test_schedules_are_checked_with_their_placeholders_filled_in(app: Penstock) -> None:
    @app.job(name="send")
    async def send(to: str, copies: str = "") -> None: ...

    @app.job(name="gone")
    async def gone() -> None: ...

    await app.schedule("daily", send, {"to": "{{ tick.date }}"}, every=60)
    await app.schedule("counted", send, {"to": "ann", "copies": "run {{ run }}"}, every=60)
    await app.schedule("lost", gone, every=60)
    found = await deployed(app.store).check_payloads()
    assert not found.fits
    lost, sent = found.schedules
    assert (lost.type, lost.known, lost.unfit) == ("gone", False, 1)
    assert (sent.fitting, sent.unfit) == (1, 1)
    [example] = sent.examples
    assert (example.id, "'copies'" in example.problem) == ("counted", True)
