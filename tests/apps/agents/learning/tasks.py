"""Sessions in which agents were asked for something, and an embedder that takes no time to load."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import cycle
from typing import Any

import numpy

from penstock import Penstock
from penstock.apps.agents.sessions.records import AgentSession, NewTurn
from penstock.testing import FakeClock, drain

GOOD = "thanks, that works"
BAD = "it is still broken"
DAY_MS = 86_400_000

TASKS = (
    ("Deploy the service to {}", "deploy", True),
    ("Translate the notes about {}", "translate", True),
    ("Migrate the tables of {}", "migrate", False),
    ("Balance the ledger of {}", "calculator", False),
)
PLACES = ("staging", "the shop", "billing", "search", "the archive", "logins")


class Words:
    """Adds up a fixed direction for each word: texts that share words are near each other."""

    model = "words-64"
    dimensions = 64

    def embed(self, texts: Sequence[str]) -> Any:
        """Return an array (texts, dimensions) of float32, each row of length 1."""
        return numpy.stack([_direction(text) for text in texts])


def _direction(text: str) -> Any:
    total = numpy.zeros(Words.dimensions, numpy.float32)
    for word in text.lower().replace("(", " ").replace(")", " ").split():
        seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
        total += numpy.random.default_rng(seed).standard_normal(Words.dimensions)
    return (total / (numpy.linalg.norm(total) or 1)).astype(numpy.float32)


EMBEDDER = {"provider": f"{__name__}:Words"}
BY_HAND = {"embedder": EMBEDDER, "learning": {"automatic": False}}
"""Settings with which nothing is learned unless a test says so."""


def asked(
    request: str, skill: str, *, succeeded: bool, said: str = "", **metadata: Any
) -> tuple[NewTurn, ...]:
    """A task: what the user asked, what the tool did, what the agent and the user said."""
    turns = [
        NewTurn(role="user", content=request, metadata=metadata),
        NewTurn(role="tool", content="It ran.", skill_id=skill, succeeded=succeeded),
        NewTurn(role="assistant", content="That is done."),
    ]
    if said:
        turns.append(NewTurn(role="user", content=said))
    return tuple(turns)


async def close_session(
    app: Penstock, name: str, *turns: NewTurn, tenant: str = "north", user: str = "ada"
) -> AgentSession:
    """Open a session, add its turns and close it."""
    sessions = app.agents.sessions
    await sessions.open(session_id=name, tenant=tenant, user=user)
    await sessions.add(name, *turns)
    return await sessions.close(name)


async def give_tasks(app: Penstock, count: int = 48, tenant: str = "north") -> None:
    """Sessions that are over, with tasks of four kinds, two of which succeed."""
    await give_sessions(
        app,
        tenant,
        {
            f"{tenant}-{n:03}": asked(
                request.format(PLACES[n // len(TASKS) % len(PLACES)]),
                skill,
                succeeded=succeeds,
                said=GOOD if succeeds else BAD,
            )
            for n, (request, skill, succeeds) in zip(range(count), cycle(TASKS), strict=False)
        },
    )


async def give_sessions(
    app: Penstock, tenant: str, sessions: Mapping[str, Sequence[NewTurn]]
) -> None:
    """Sessions that are over, all in one commit."""

    def work(tx: Any) -> None:
        for n, (name, turns) in enumerate(sessions.items()):
            owned = {"tenant_id": tenant, "user_id": f"user{n % 3}", "metadata": "{}"}
            session = {
                "id": name,
                "workspace_id": None,
                "started_at": tx.now,
                "last_active_at": tx.now,
                "expires_at": None,
                "status": "closed",
                "turns": len(turns),
            }
            tx.agents.run("open_session", session | owned)
            for number, turn in enumerate(turns, 1):
                row = {
                    "session_id": name,
                    "n": number,
                    "role": turn.role,
                    "content": turn.content,
                    "skill_id": turn.skill_id,
                    "succeeded": None if turn.succeeded is None else int(turn.succeeded),
                    "at": tx.now,
                }
                tx.agents.run("add_turn", row | owned)

    await app.transact(work)
    await run(app, "trajectory-process", {})


async def run(app: Penstock, name: str, data: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Run a job that is triggered as users do; its result as it is stored."""
    handle = await app.agents.enqueue(name, data, **options)
    await drain(app)
    job = await app.get(handle.id)
    assert job.status == "completed", job.error
    result: dict[str, Any] = json.loads(job.result or "null")
    return result


def days_ago(app: Penstock, days: float) -> None:
    """Move the wall clock of an application back; 0 days is where it was."""
    clock = app.store.clock
    assert isinstance(clock, FakeClock)
    clock.set_wall(NOW - round(days * DAY_MS))


NOW = FakeClock("2026-01-01T00:00:00Z").now()
