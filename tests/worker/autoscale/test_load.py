from penstock import Penstock
from penstock.testing import FakeClock, drain
from penstock.worker.autoscale import measure
from tests.support.workers import beat


async def test_the_load_counts_what_waits_and_how_busy_live_workers_are(
    app: Penstock, clock: FakeClock
) -> None:
    @app.job
    async def task() -> None: ...

    @app.job(queue="mail")
    async def send() -> None: ...

    await task.enqueue()
    clock.advance(400)
    await drain(app)
    await app.enqueue_many([send.new(), send.new()])
    workers = app.store.workers
    workers.beat(beat(owner="host:gone", cpu_percent=99.0))
    clock.advance(60)
    workers.beat(beat(owner="host:1", cpu_percent=80.0))
    workers.beat(beat(owner="host:2", cpu_percent=40.0, queues=("default",)))
    everything = await measure(app.store)
    assert (everything.queued, everything.in_progress, everything.workers) == (2, 0, 2)
    assert everything.cpu_percent == 60
    assert 300 < everything.wait_seconds < 600
    mail = await measure(app.store, queues=["mail"])
    assert (mail.queued, mail.workers, mail.wait_seconds, mail.cpu_percent) == (2, 1, 0, 80)
    assert (await measure(app.store, owners=["host:2"])).cpu_percent == 40
