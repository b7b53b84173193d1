"""`python -m proof.ewc`: how much a classifier of verdicts forgets, with and without the penalty.

Made-up sessions of an agent go the whole way through the product: they are closed, become
trajectories, and `pattern-training` trains the classifier. First come tasks of one kind, then only
newer ones, in which the same verbs mean other work with other ends. Between the two,
`ewc-consolidation` marks what matters. The accuracy is on tasks that were never trained on, in
other words; a share of verdicts in training is wrong on purpose.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock import Penstock
from penstock.apps.agents.learning.classifier import from_bytes, labels_of, score
from penstock.apps.agents.learning.jobs import STRENGTH
from penstock.apps.agents.learning.learning import Learning
from penstock.apps.agents.learning.verdicts import with_skills
from penstock.apps.agents.namespace import Agents
from penstock.apps.agents.sessions.records import NewTurn
from penstock.apps.agents.sessions.sessions import Sessions
from penstock.apps.agents.vectors.embedder import embedder_of
from penstock.config import Settings
from penstock.testing import FakeClock, drain
from proof.bench.report import print_figures_only

TENANT = "proof"
COUNT = 500
ASKED = 400
WRONG = 0.05
STRENGTHS = (0.0, 3.0, 10.0, STRENGTH, 100.0, 300.0)

OLD = (
    ("deploy the service", True),
    ("restart the worker", True),
    ("rotate the logs", True),
    ("migrate the database", False),
    ("rewrite the scheduler", False),
    ("upgrade the kernel", False),
)
NEW = (
    ("deploy the sensor firmware", False),
    ("restart the billing run", False),
    ("rotate the on-call plan", False),
    ("migrate the notes to the wiki", True),
    ("rewrite the email in plain words", True),
    ("upgrade the plan of a customer", True),
)
TRAINED = (
    ("Please {}", "Could you {}?", "We need to {} today", "{}", "Now {}, carefully"),
    ("staging", "production", "the shop", "billing", "the Berlin office", "the mobile app"),
)
UNSEEN = (
    ("I want you to {}", "Time to {}", "Can somebody {} soon?", "Next: {}"),
    ("the search team", "Lisbon", "the data team", "the night shift"),
)


class Task(NamedTuple):
    """What is asked, and whether it is going to succeed."""

    request: str
    succeeds: bool


def tasks(kinds: Any, words: Any, count: int, chance: random.Random) -> Iterator[Task]:
    """Requests of some kinds in some words."""
    forms, places = words
    for _ in range(count):
        work, succeeds = chance.choice(kinds)
        asked = chance.choice(forms).format(work)
        yield Task(f"{asked}, for {chance.choice(places)}", succeeds)


async def close_sessions(
    app: Penstock, name: str, given: list[Task], chance: random.Random
) -> None:
    """Close a session for each task; some of them are told to have ended otherwise."""
    sessions = Sessions(app)
    for n, task in enumerate(given):
        ended = task.succeeds != (chance.random() < WRONG)
        said = "thanks, that works" if ended else "it is still broken"
        session = await sessions.open(session_id=f"{name}-{n}", tenant=TENANT)
        await sessions.add(
            session.id,
            NewTurn(role="user", content=task.request),
            NewTurn(role="assistant", content="That is done."),
            NewTurn(role="user", content=said),
        )
        await sessions.close(session.id)
    await run(app, "trajectory-process", {"batchSize": 1_000})


async def run(app: Penstock, name: str, data: dict[str, Any]) -> None:
    """Run a job, as its schedule would have it enqueued."""
    await Agents(app).enqueue(name, data, tenant=TENANT)
    ended = await drain(app)
    if ended.failed:
        raise SystemExit(f"{name} failed")


async def accuracy(app: Penstock, classifier_id: str, asked: list[Task]) -> float:
    """The share of verdicts that a stored classifier predicts."""
    row = await app.read(lambda tx: tx.agents.row("classifier", (classifier_id,)))
    texts = [with_skills(task.request, ()) for task in asked]
    wanted = labels_of(["success" if task.succeeds else "failure" for task in asked])
    return score(from_bytes(row[4]), embedder_of(app).embed(texts), wanted).accuracy


async def latest(app: Penstock, known: set[str]) -> str:
    """The classifier that was trained last."""
    (found,) = [
        each.id for each in await Learning(app).classifiers(tenant=TENANT) if each.id not in known
    ]
    known.add(found)
    return found


async def measure(seed: int) -> tuple[float, dict[float, tuple[float, float]]]:
    """Old tasks predicted before anything new; then both, for each strength of the penalty."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        clock = FakeClock()
        settings = Settings(
            extension={"agents": {"schedules": False, "learning": {"automatic": False}}}
        )
        url = f"sqlite:///{folder}/work.db"
        async with Penstock(url, extensions=["agents"], settings=settings, clock=clock) as app:
            await close_sessions(app, "old", [*tasks(OLD, TRAINED, COUNT, chance)], chance)
            await run(app, "pattern-training", {"batchSize": COUNT})
            await run(app, "ewc-consolidation", {})
            clock.advance(86_400)
            await close_sessions(app, "new", [*tasks(NEW, TRAINED, COUNT, chance)], chance)
            old = [*tasks(OLD, UNSEEN, ASKED, chance)]
            new = [*tasks(NEW, UNSEEN, ASKED, chance)]
            known: set[str] = set()
            first = await latest(app, known)
            before = await accuracy(app, first, old)
            found = {}
            for strength in STRENGTHS:
                data = {"batchSize": COUNT, "penalty": strength}
                # Each begins with the first one, not with what another strength has left active.
                await app.transact(
                    lambda tx: tx.agents.run("activate_classifier", {"id": first, "tenant": TENANT})
                )
                await run(app, "pattern-training", data)
                trained = await latest(app, known)
                found[strength] = (
                    await accuracy(app, trained, old),
                    await accuracy(app, trained, new),
                )
            return before, found


def report(seeds: int) -> Iterator[str]:
    """Lines of a table: means over several seeds."""
    runs = [asyncio.run(measure(seed)) for seed in range(1, seeds + 1)]
    before = sum(first for first, _ in runs) / seeds
    yield f"Old tasks before anything new was learned: {before:.1%} of {ASKED} verdicts."
    yield ""
    yield f"| penalty | old tasks, after {COUNT} newer ones | new tasks |"
    yield "|---:|---:|---:|"
    for strength in STRENGTHS:
        old = sum(found[strength][0] for _, found in runs) / seeds
        new = sum(found[strength][1] for _, found in runs) / seeds
        named = {0.0: "none", STRENGTH: f"{STRENGTH:g} (default)"}.get(strength, f"{strength:g}")
        yield f"| {named} | {old:.1%} | {new:.1%} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=3, help="how many times, each otherwise")
    given = parser.parse_args()
    print_figures_only()
    for line in report(given.seeds):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
