"""Handlers for faults of workers. Each leaves a line in a file that no death can take back."""

import asyncio
import os
import re
import resource
import signal
import time
from pathlib import Path

from penstock import Context, Penstock

STEP_SECONDS = 0.01
PATIENCE_SECONDS = 60.0

app = Penstock()


def leave(ctx: Context, effects: str, word: str) -> None:
    """Append one line."""
    log = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, f"{word} {ctx.id} {ctx.attempt} {ctx.fence} {os.getpid()}\n".encode())
    os.close(log)


def opened(gate: str) -> bool:
    """Whether the test let the handlers go on."""
    return Path(gate).exists()


@app.job(timeout=60)
async def quick(ctx: Context, effects: str) -> int:
    leave(ctx, effects, "done")
    return ctx.fence


@app.job(timeout=60)
async def held(ctx: Context, effects: str, gate: str) -> int:
    """Run until the gate is there."""
    leave(ctx, effects, "began")
    for _ in range(int(PATIENCE_SECONDS / STEP_SECONDS)):
        if opened(gate):
            break
        await asyncio.sleep(STEP_SECONDS)
    leave(ctx, effects, "done")
    return ctx.fence


@app.job(timeout=60)
async def chatty(ctx: Context, effects: str, gate: str) -> int:
    """Run until the gate is there, and tell how it goes all the time."""
    leave(ctx, effects, "began")
    for step in range(int(PATIENCE_SECONDS / STEP_SECONDS)):
        if opened(gate):
            break
        ctx.progress(step % 100, "on my way")
        await asyncio.sleep(STEP_SECONDS)
    leave(ctx, effects, "done")
    return ctx.fence


def _hold(ctx: Context, effects: str, gate: str) -> int:
    leave(ctx, effects, "began")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not opened(gate) and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
    leave(ctx, effects, "done")
    return ctx.fence


@app.job(timeout=60)
def held_in_thread(ctx: Context, effects: str, gate: str) -> int:
    return _hold(ctx, effects, gate)


@app.job(timeout=60, run_in="process")
def held_in_process(ctx: Context, effects: str, gate: str) -> int:
    return _hold(ctx, effects, gate)


@app.job(timeout=0.3, max_retries=0, run_in="process")
def overrunning(ctx: Context, effects: str, gate: str) -> int:
    return _hold(ctx, effects, gate)


@app.job(timeout=60)
async def blocking(ctx: Context, effects: str, seconds: float) -> int:
    """Stop the whole event loop, as no handler should."""
    leave(ctx, effects, "began")
    time.sleep(seconds)  # noqa: ASYNC251
    leave(ctx, effects, "done")
    return ctx.fence


@app.job(timeout=60, run_in="process")
def never_letting_go(ctx: Context, effects: str) -> None:
    """Stay for ever inside one C call that holds the interpreter's lock."""
    leave(ctx, effects, "began")
    re.match(r"(a+)+$", "a" * 64 + "b")


def _segfault_at(ctx: Context, effects: str, gate: str) -> None:
    leave(ctx, effects, "began")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not opened(gate) and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
    os.kill(os.getpid(), signal.SIGSEGV)


@app.job(timeout=60, priority=1)
def poison(ctx: Context, effects: str, gate: str) -> None:
    """Take the process down once the gate is there."""
    _segfault_at(ctx, effects, gate)


@app.job(timeout=60, run_in="process")
def killed_for_memory(ctx: Context, effects: str) -> None:
    """End as the kernel's out-of-memory killer ends a process."""
    leave(ctx, effects, "began")
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(timeout=60, run_in="process", max_retries=2, retry_delay=0)
def greedy(ctx: Context, effects: str) -> int:
    """Ask for more memory than this process may have."""
    leave(ctx, effects, "began")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 64_000_000, resource.RLIM_INFINITY))
    return len(bytearray(1_000_000_000))
