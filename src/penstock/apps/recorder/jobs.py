"""The recorder's types of jobs, as its queue runs them.

Who is away, the model, the Kubo node or the chain, is waited for: a job that meets one comes back
later without spending an attempt, and later each time.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.app.blueprint import Blueprint
from penstock.app.context import Context
from penstock.apps.recorder.captured import QUEUE, QUEUE_LIMIT, VALIDATION
from penstock.apps.recorder.complete import EXTRACT
from penstock.apps.recorder.git import read_commits
from penstock.apps.recorder.outbound import Away, Later
from penstock.model.outcome import Snooze
from penstock.model.wording import counted

SUMMARISE = "recorder.summarise"
UPLOAD = "mine_upload"
UNPIN = "recorder.unpin"
SOON = 30.0
LATEST = 6 * 3_600.0
SLOWER = 1.15
"""Each further look at something that takes its time comes so much later."""

jobs = Blueprint()
jobs.register(read_commits)
jobs.limit(queue=QUEUE, depth=QUEUE_LIMIT)


@jobs.job(name=VALIDATION, queue=QUEUE, priority=1, max_retries=3)
async def sanitize_ai_validation(
    ctx: Context,
    conversation_id: str,
    message_ids: list[str],
    sanitization_version: int | str = 0,
) -> Any:
    """Look once more at messages that the sanitiser has cleaned, and at others that wait."""
    from penstock.apps.recorder.validate import validate

    ctx.log(f"asked for {counted(len(message_ids), 'message')}", "debug")
    return await waiting(
        ctx, lambda: validate(ctx.app, conversation_id, str(sanitization_version), ctx.id)
    )


@jobs.job(name=EXTRACT, queue=QUEUE, priority=5, max_retries=3, timeout=300)
async def extract_learning(
    ctx: Context,
    conversation_id: str,
    min_confidence: float = 0.6,
    categories: list[str] = [],  # noqa: B006
) -> Any:
    """Look through a complete conversation for what was learned in it."""
    from penstock.apps.recorder.learn import learn

    return await waiting(ctx, lambda: learn(ctx.app, conversation_id, min_confidence, categories))


@jobs.job(name=SUMMARISE, queue=QUEUE, priority=8, max_retries=2)
async def summarise_session(ctx: Context, conversation_id: str) -> Any:
    """Have the model say what is worth knowing of a session."""
    from penstock.apps.recorder.summaries import summarise

    return await waiting(ctx, lambda: summarise(ctx.app, conversation_id))


@jobs.job(name=UPLOAD, queue=QUEUE, priority=10, max_retries=5, timeout=300)
async def mine_upload(ctx: Context, learning_id: str) -> Any:
    """Publish a learning: to IPFS, and its address to the registry on the chain."""
    from penstock.apps.recorder.publish.upload import publish

    return await waiting(ctx, lambda: publish(ctx.app, learning_id))


@jobs.job(name=UNPIN, queue=QUEUE, priority=10, max_retries=5)
async def unpin(ctx: Context, learning_id: str) -> Any:
    """Have the Kubo node hold a learning no longer that was revoked."""
    from penstock.apps.recorder.publish.upload import unpin as unpinned

    return await waiting(ctx, lambda: unpinned(ctx.app, learning_id))


async def waiting(ctx: Context, work: Callable[[], Awaitable[Any]]) -> Any:
    """Do some work; if somebody is away, come back later."""
    try:
        return await work()
    except Away as away:
        grown = min(LATEST, SOON * 2 ** min(ctx.job.snoozes, 12))
        return Snooze(max(grown, away.after or 0), str(away))
    except Later as later:
        return Snooze(min(LATEST, later.seconds * SLOWER**ctx.job.snoozes), str(later))
