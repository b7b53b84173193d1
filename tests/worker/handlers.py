"""Handlers that a process of their own can import."""

import logging
import os
import time
from typing import Any

from penstock import Context, Penstock, Settings, Snooze

app = Penstock("sqlite:///:memory:", settings=Settings())


class NotPicklable(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


@app.job(run_in="process")
def pid() -> int:
    return os.getpid()


@app.job
async def where() -> int:
    return os.getpid()


@app.job(max_retries=0)
async def uses_the_application() -> int:
    await app.find(limit=1)
    return os.getpid()


@app.job(run_in="process")
async def pid_async(ctx: Context) -> list[int]:
    ctx.log("hello from a process")
    ctx.progress(50, "half")
    await ctx.save_checkpoint({"pid": os.getpid()})
    return [os.getpid(), ctx.fence]


closings: list[str] = []


@app.job(run_in="process")
async def count_closings() -> list[int]:
    """How often the application was closed in this process since the first call."""
    before = len(closings)
    close = app.store.close

    async def counted() -> None:
        closings.append("closed")
        await close()

    if "close" not in vars(app.store):
        app.store.close = counted  # type: ignore[method-assign]
    await app.find(limit=1)
    return [os.getpid(), before]


@app.job(run_in="process")
def count_closings_in_function() -> list[int]:
    return [os.getpid(), len(closings)]


@app.job(run_in="process")
def say(what: str) -> None:
    logging.getLogger(__name__).info("said %s", what)
    logging.getLogger("penstock.store").info("ours")


@app.job(run_in="process", max_retries=0)
def fail(how: str) -> Any:
    match how:
        case "plain":
            raise PermissionError("not yours")
        case "not picklable":
            raise NotPicklable("this", "that")
        case "exit":
            raise SystemExit(3)
        case "unserializable":
            return object()
        case _:
            return Snooze(60)


@app.job(run_in="process", max_retries=0)
def die(code: int) -> None:
    os._exit(code)


@app.job(run_in="process", max_retries=1)
def hang(ctx: Context) -> None:
    ctx.log(str(os.getpid()))
    ctx.progress(1)
    while True:
        time.sleep(60)


@app.job(run_in="process")
def wait_for_stop(ctx: Context) -> str:
    ctx.progress(1)
    while not ctx.cancelled:
        time.sleep(0.01)
    return "stopped early"


@app.job(run_in="process")
def fill(megabytes: int) -> int:
    return len(bytearray(megabytes * 1_000_000))


def made(name: str, **options: Any) -> Any:
    def handler() -> int:
        return os.getpid()

    return app.job(name=name, **options)(handler)


class Counter:
    def __init__(self, step: int) -> None:
        self.step = step

    def pid_and_step(self) -> list[int]:
        return [os.getpid(), self.step]

    async def pid_and_step_async(self) -> list[int]:
        return [os.getpid(), self.step]

    @classmethod
    def pid_and_two(cls) -> list[int]:
        return [os.getpid(), 2]

    @staticmethod
    def pid_and_three() -> list[int]:
        return [os.getpid(), 3]


def _pid() -> int:
    return os.getpid()


by_another_name = app.job(name="by-another-name", aliases=["by-an-older-name"], run_in="process")(
    _pid
)
made_in_a_function = made("made-in-a-function")
made_for_a_process = made("made-for-a-process", run_in="process")
HELD = {"nowhere else": app.job(name="held-in-a-dictionary", run_in="process")(lambda: os.getpid())}
bound = app.job(name="bound", run_in="process")(Counter(4).pid_and_step)
bound_async = app.job(name="bound-async")(Counter(5).pid_and_step_async)
of_the_class = app.job(name="of-the-class", run_in="process")(Counter.pid_and_two)
static = app.job(name="static", run_in="process")(Counter.pid_and_three)
