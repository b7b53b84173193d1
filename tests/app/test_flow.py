"""Chains and groups: enqueued as one, run in order, results passed on."""

from typing import Any

import pytest

from penstock import (
    Context,
    FlowHandle,
    Penstock,
    Status,
    after,
    chain,
    group,
)
from penstock.app.flow import plan
from penstock.model.dependency import EdgeKind
from penstock.model.errors import DependencyCycle, InvalidArguments, InvalidOption
from penstock.store.contract import JobFilter
from tests.app.kitchen import Kitchen, kitchen

pytestmark = pytest.mark.thorough("postgres", "valkey")

__all__ = ["kitchen"]


@pytest.mark.quick("postgres", "valkey")
async def test_a_chain_passes_each_result_to_the_next(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(chain(kitchen.peel.new(4), kitchen.cook.new(), kitchen.clean.new()))
    assert [(await job.get()).status for job in flow.jobs] == ["queued", "pending", "pending"]
    await drain()
    assert kitchen.did == [("peel", 4), ("cook", 4), "clean"]
    assert await flow.result(timeout=5) == "clean"
    assert await app.store.upkeep.release() == 0


async def test_a_group_passes_the_list_of_its_results(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(group(kitchen.peel.new(1), kitchen.peel.new(2)) | kitchen.serve.new())
    await drain()
    assert await flow.result(timeout=5) == [1, 2]
    assert kitchen.did[-1] == ("serve", [1, 2])


async def test_the_bar_makes_the_same_chain_as_the_function(kitchen: Kitchen) -> None:
    a, b, c = kitchen.peel.new(4), kitchen.cook.new(), kitchen.clean.new()
    assert (a | b | c).steps == chain(a, b, c).steps == (a | (b | c)).steps
    assert repr(a | group(b, c)) == "chain(peel, group(cook, clean))"


async def test_flows_nest(app: Penstock, drain: Any, kitchen: Kitchen) -> None:
    flow = await app.enqueue(
        chain(
            kitchen.peel.new(1),
            group(chain(kitchen.cook.new(), kitchen.cook.new()), kitchen.cook.new(salt=3)),
            group(kitchen.serve.new(), kitchen.clean.new()),
        )
    )
    await drain()
    assert await flow.result(timeout=5) == [[111, 13], "clean"]


async def test_a_group_alone_has_the_list_of_its_results(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(group(kitchen.peel.new(2), group(kitchen.peel.new(1))))
    await drain()
    assert await flow.result(timeout=5) == [2, [1]]


async def test_a_group_of_one_is_still_a_list(app: Penstock, drain: Any, kitchen: Kitchen) -> None:
    flow = await app.enqueue(group(kitchen.peel.new(2)) | kitchen.serve.new())
    await drain()
    assert await flow.result(timeout=5) == [2]


async def test_the_first_argument_without_a_value_is_filled(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    flow = await app.enqueue(kitchen.peel.new(5) | kitchen.mix.partial(second=2))
    other = await app.enqueue(kitchen.peel.new(6) | kitchen.mix.partial(3))
    await drain()
    assert await flow.result(timeout=5) == 7
    assert kitchen.did[-2:] == [("mix", 5, 2), ("mix", 3, 6)]
    assert await other.result(timeout=5) == 9


async def test_a_call_with_all_its_arguments_only_waits(kitchen: Kitchen) -> None:
    made = plan(kitchen.peel.new(5) | kitchen.cook.new(7))
    assert [edge.kind for edge in made.calls[1].job.after] == [EdgeKind.SUCCESS]


async def test_a_step_may_say_itself_what_it_takes_from_the_step_before(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    first = kitchen.peel.new(5)
    second = kitchen.mix.options(after=after(first, data="second", condition="result > 4"))
    flow = await app.enqueue(chain(first, second.partial(1)))
    await drain()
    assert await flow.result(timeout=5) == 6


async def test_a_step_may_say_itself_what_becomes_of_it_when_the_step_before_fails(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    burn = kitchen.burn.new(1)
    waits = kitchen.clean.options(after=after(burn, on_failure="run")).new()
    flow = await app.enqueue(burn | waits)
    await drain()
    assert await flow.result(timeout=5) == "clean"


@pytest.mark.parametrize("choice", [{"on_failure": "run"}, {"when": "completion"}])
async def test_its_argument_is_filled_under_the_same_policy(
    app: Penstock, drain: Any, kitchen: Kitchen, choice: Any
) -> None:
    @app.job
    async def taste(dish: int | None) -> str:
        return f"tasted {dish}"

    burn, peel = kitchen.burn.new(1), kitchen.peel.new(2)
    burnt = await app.enqueue(burn | taste.options(after=after(burn, **choice)).partial())
    peeled = await app.enqueue(peel | taste.options(after=after(peel, **choice)).partial())
    await drain()
    assert await burnt.result(timeout=5) == "tasted None"
    assert await peeled.result(timeout=5) == "tasted 2"


async def test_a_step_may_wait_for_a_job_outside_the_flow(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    outside = await kitchen.peel.enqueue(3)
    step = kitchen.mix.options(after=after(outside, data="second")).partial()
    flow = await app.enqueue(kitchen.peel.new(2) | step)
    await drain()
    assert await flow.result(timeout=5) == 5


async def test_a_call_that_lacks_an_argument_is_refused_outside_a_flow(
    app: Penstock, kitchen: Kitchen
) -> None:
    lacking: Any = kitchen.cook.new()
    for attempt in (
        lambda: app.enqueue(lacking),
        lambda: app.enqueue_many([kitchen.clean.new(), lacking]),
        lambda: kitchen.cook.enqueue(),  # type: ignore[call-arg]
    ):
        with pytest.raises(InvalidArguments, match=r"'dish' of job type 'cook' .* got nothing"):
            await attempt()
    assert await app.store.reader.find(JobFilter()) == []


async def test_a_flow_whose_calls_still_lack_arguments_is_refused_whole(
    app: Penstock, kitchen: Kitchen
) -> None:
    for flow in (
        chain(kitchen.cook.new(), kitchen.clean.new()),
        chain(kitchen.peel.new(1), kitchen.mix.new()),
        group(kitchen.clean.new(), kitchen.cook.new()),
    ):
        with pytest.raises(InvalidArguments, match="got nothing"):
            await app.enqueue(flow)
    assert await app.store.reader.find(JobFilter()) == []


async def test_what_is_no_step_is_refused_where_the_flow_is_made(
    app: Penstock, kitchen: Kitchen
) -> None:
    step: Any = kitchen.peel
    for make in (
        lambda: chain(),
        lambda: group(),
        lambda: chain(step),
        lambda: kitchen.peel.new(1) | step,
    ):
        with pytest.raises(InvalidOption, match="made of calls"):
            make()
    with pytest.raises(InvalidOption, match="made with new"):
        await app.enqueue(step)


async def test_a_call_cannot_run_after_itself(app: Penstock, kitchen: Kitchen) -> None:
    peel, clean = kitchen.peel.new(1), kitchen.clean.new()
    with pytest.raises(DependencyCycle) as refused:
        await app.enqueue(chain(clean, peel, clean))
    assert f"clean {clean.job.id} -> peel {peel.job.id} -> clean {clean.job.id}" in str(
        refused.value
    )


async def test_a_call_stands_in_a_flow_once(app: Penstock, kitchen: Kitchen) -> None:
    peel = kitchen.peel.new(1)
    with pytest.raises(InvalidOption, match="in two places"):
        await app.enqueue(group(peel, peel))


async def test_results_of_groups_in_groups_need_a_call_that_gathers_them(
    app: Penstock, kitchen: Kitchen
) -> None:
    inner = group(kitchen.peel.new(1), kitchen.peel.new(2))
    with pytest.raises(InvalidOption, match="after the inner group"):
        await app.enqueue(group(inner, kitchen.peel.new(3)) | kitchen.serve.new())
    assert len(plan(group(inner, kitchen.peel.new(3)) | kitchen.clean.new()).calls) == 4


async def test_a_flow_that_is_enqueued_again_makes_nothing_new(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    made = kitchen.peel.new(4) | kitchen.cook.new()
    first, again = await app.enqueue(made), await app.enqueue(made)
    assert (first.created, again.created) == (True, False)
    assert first.ids == again.ids
    await drain()
    assert await again.result(timeout=5) == 41


async def test_a_step_whose_key_is_taken_joins_the_job_that_has_it(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    holder = await kitchen.peel.options(key="k").enqueue(7)
    flow = await app.enqueue(kitchen.peel.options(key="k").new(1) | kitchen.cook.new())
    assert flow.ids[0] == holder.id
    await drain()
    assert await flow.result(timeout=5) == 71


async def test_flows_and_calls_are_enqueued_together_or_not_at_all(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    call, flow = await app.enqueue_many(
        [kitchen.clean.new(), kitchen.peel.new(1) | kitchen.cook.new()]
    )
    assert isinstance(flow, FlowHandle)
    await drain()
    assert (await call.result(timeout=5), await flow.result(timeout=5)) == ("clean", 11)
    bad = kitchen.peel.options(after="01JD0000000000000000000000").new(1)
    with pytest.raises(Exception, match="not in the store"):
        await app.enqueue_many([kitchen.peel.new(2) | kitchen.cook.new(), bad])
    assert len(await app.store.reader.find(JobFilter())) == 3


async def test_a_job_can_wait_for_a_whole_flow(app: Penstock, drain: Any, kitchen: Kitchen) -> None:
    flow = await app.enqueue(kitchen.peel.new(1) | group(kitchen.cook.new(), kitchen.cook.new()))
    waiting = await kitchen.clean.options(after=flow, priority=1).enqueue()
    plates = await kitchen.serve.options(after=after(flow, data="plates")).enqueue()
    assert (await waiting.get()).waiting_on == 2
    await drain()
    assert await plates.result(timeout=5) == [11, 11]


async def test_a_handler_can_enqueue_a_flow_of_children(
    app: Penstock, drain: Any, kitchen: Kitchen
) -> None:
    @app.job
    async def party(ctx: Context) -> list[str]:
        flow = await ctx.enqueue(kitchen.peel.new(1) | kitchen.cook.new())
        return flow.ids

    @app.job
    def quiet_party(ctx: Context) -> list[str]:
        return ctx.sync.enqueue(kitchen.peel.new(2) | kitchen.cook.new()).ids

    hosts = [await party.options(tenant="acme").enqueue(), await quiet_party.enqueue()]
    await drain()
    for host in hosts:
        children = [await app.get(job_id) for job_id in await host.result(timeout=5)]
        assert {child.parent_job_id for child in children} == {host.id}
        assert {child.status for child in children} == {Status.COMPLETED}
    assert {child.tenant_id for child in await app.find(parent_job_id=hosts[0].id)} == {"acme"}


def test_a_flow_without_an_event_loop(app: Penstock, kitchen: Kitchen, drain: Any) -> None:
    flow = app.sync.enqueue(kitchen.peel.new(1) | kitchen.cook.new())
    app.sync.run(drain())
    assert app.sync.result(flow, timeout=5) == 11
