"""The demonstration that goes on: `penstock up penstock.demo.live:app`.

Its schedules play the customers of a small shop, so there is always something to see: mail,
pictures, imports with progress, invoices whose bank is away, orders that can never be charged,
flows, a provider that takes five messages a second, and now and then a worker that is killed in
the middle of its jobs, which are rescued. Beside it, assistants write code, and are recorded; and
in a second act (`support.py`) an agent helps users, remembers them, and learns.
"""

import os
import random
import signal
from datetime import date

from penstock.app.context import Context
from penstock.app.extensions import load_extension
from penstock.app.flow import group
from penstock.app.job_type import Prepared
from penstock.apps.recorder.demo import go_on, play
from penstock.apps.recorder.reading import Sessions
from penstock.demo import jobs, support
from penstock.demo.jobs import app

CUSTOMERS = ("ada", "grace", "alan", "edsger", "barbara", "donald", "radia", "ken")
BRANCHES = ("north", "south", "west")
PICTURES = 4
TEXTS = 20
FEW_DEAD = 40
FIRST_POWER_CUT = 20
POWER_CUTS_APART = 1_800
"""In seconds: the first is seen soon, and the next ones do not spoil the figures."""

for extension in ("events", "recorder"):
    app.extensions.enable(load_extension(extension))
support.prepare()

__all__ = ["app"]


@app.scheduled(name="customers", every=2)
@app.job(name="shop.customers", queue="shop", max_retries=0)
async def customers() -> int:
    """Somebody registers, somebody uploads a picture."""
    small = [_small() for _ in range(random.randint(3, 9))]
    await app.enqueue_many(small)
    await app.enqueue(seldom.new())
    return len(small)


@app.job(name="shop.power_cut", queue="shop", max_retries=0)
async def power_cut(ctx: Context) -> str:
    """Kill the worker that runs this; another takes over its jobs, this one among them."""
    if ctx.checkpoint:
        ctx.log("rescued: the worker that ran this before was killed")
        return "the lights are on again"
    await ctx.save_checkpoint("the lights go out")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody outlives SIGKILL")


seldom = power_cut.options(key="power cut", key_window=POWER_CUTS_APART, delay=FIRST_POWER_CUT)


@app.scheduled(name="orders", every=7)
@app.job(name="shop.orders", queue="shop", max_retries=0)
async def orders() -> None:
    """An order: pictures side by side, then their montage; and an invoice for a bank in trouble."""
    pictures = [
        jobs.thumbnail.new(f"{name}.jpg", 320) for name in random.sample(CUSTOMERS, PICTURES)
    ]
    await app.enqueue(group(*pictures) | jobs.montage.new())
    number = random.randint(1_000, 9_999)
    invoice = jobs.invoice.options(tenant=random.choice(BRANCHES), tags=("customer",))
    await app.enqueue(invoice.new(number, failures=random.choice((0, 0, 1, 2, 3))))


@app.scheduled(name="imports", every=17)
@app.job(name="shop.imports", queue="shop", max_retries=0)
async def imports() -> None:
    """Long work that tells its progress: rows of a file, and a picture for a processor."""
    await app.enqueue(jobs.import_rows.new(f"{random.choice(BRANCHES)}.csv", pause=0.4))
    await app.enqueue(jobs.render.new("catalogue", seconds=6.0))


@app.scheduled(name="campaign", every=31)
@app.job(name="shop.campaign", queue="shop", max_retries=0)
async def campaign() -> None:
    """More messages than their provider takes at once: the rest waits its turn."""
    await app.enqueue_many([jobs.text.new(random.choice(CUSTOMERS)) for _ in range(TEXTS)])


@app.scheduled(name="unpaid-orders", every=47)
@app.job(name="shop.unpaid_orders", queue="shop", max_retries=0)
async def unpaid_orders() -> None:
    """An order without a customer, which becomes a dead letter; not more than somebody reads."""
    total = sum(each.open for each in await app.dead.groups())
    if total < FEW_DEAD:
        await app.enqueue(jobs.charge.new(f"A-{random.randint(1_000, 9_999)}"))


@app.scheduled(
    name="nightly-report",
    cron="0 3 * * *",
    zone="Europe/Vienna",
    arguments={"day": "{{ tick.date }}"},
)
@app.job(name="shop.report", queue="data", priority=8)
async def report(day: date) -> str:
    """What most schedules are for: once a night, in the shop's own zone."""
    return f"report of {day}"


@app.scheduled(name="assistants", every=20)
@app.job(name="shop.assistants", queue="shop", max_retries=0)
async def assistants() -> int:
    """Sessions of coding assistants: two weeks of them at first, then one that is under way."""
    if not await Sessions(app).list():
        await play(app)
    return await go_on(app)


def _small() -> Prepared[str]:
    branch = random.choice(BRANCHES)
    if random.random() < 0.6:
        name = random.choice(CUSTOMERS)
        return jobs.mail.options(tenant=branch, tags=("customer",)).new(f"{name}@example.com")
    number = random.randint(1, 99_999)
    width = random.choice((160, 320, 640))
    return jobs.thumbnail.options(tenant=branch).new(f"photo-{number}.jpg", width)
