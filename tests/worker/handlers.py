"""Handlers that a process of their own can import."""

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


@app.job(run_in="process")
async def pid_async(ctx: Context) -> list[int]:
    ctx.log("hello from a process")
    ctx.progress(50, "half")
    await ctx.save_checkpoint({"pid": os.getpid()})
    return [os.getpid(), ctx.fence]


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
