"""How well memory answers: recall on the labelled set, and how often it is led astray.

    python -m proof.memory
    python -m proof.memory --kinds

Conversations go in by time through `app.agents.memories`, once as the sentences of their facts and
once turn by turn; questions are asked of a plain vector search with the same embedder, and of the
memory without and with consolidation and decay. Half of the users were looked at while the
weights of the search were chosen; the other half was not.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from penstock.app.penstock import Penstock
from penstock.apps.agents.memory.memories import Memories
from penstock.apps.agents.memory.records import Memory, MemoryFilter, NewMemory
from penstock.apps.agents.vectors.store import MEMORIES, vectors_of
from penstock.config import Settings
from penstock.testing import FakeClock, drain
from proof.bench.report import print_figures_only

HERE = Path(__file__).parent
LOOKED_AT = frozenset({"camille", "dag", "eamon", "kenji", "leila", "mara"})
"""Those of the users on whose questions the weights were chosen."""
DEPTHS = (1, 5, 10)
KINDS = ("plain", "changed", "past", "date", "name", "negation", "several", "paraphrase")
_CONSOLE = Console(markup=False, highlight=False, soft_wrap=True)

Line = dict[str, Any]
Ask = Callable[[Penstock, Line], Awaitable[list[Memory]]]


class Way(NamedTuple):
    """A way to remember and to ask."""

    name: str
    ask: Ask
    consolidates: bool = False
    decays: bool = False


class Score(NamedTuple):
    """How one question was answered."""

    kind: str
    user: str
    recall: dict[int, float]
    astray: bool | None


def read(name: str) -> list[Line]:
    """Return the lines of a file of the set."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def milliseconds(time: str) -> int:
    """Return a time of the set as the store counts it."""
    return int(datetime.fromisoformat(time).timestamp() * 1000)


def memories_of(app: Penstock) -> Memories:
    """Return `app.agents.memories`."""
    found: Memories = app.extensions.namespace("agents").memories
    return found


class Labels:
    """What the facts of a memory are."""

    def __init__(self, conversations: Iterable[Line]) -> None:
        self.facts = {
            fact["id"]: fact for conversation in conversations for fact in conversation["facts"]
        }
        self.of_memory: dict[str, set[str]] = defaultdict(set)

    def first(self, fact: str) -> str:
        """Return the fact that one restates, or itself."""
        while (restated := self.facts[fact].get("restates")) is not None:
            fact = restated
        return fact

    def of(self, memory: Memory) -> set[str]:
        """Return the facts of a memory, and of those that it was made of."""
        sources = memory.metadata.get("sourceMemoryIds", [])
        return set().union(*(self.of_memory[each] for each in (memory.id, *sources)))


async def by_vectors(app: Penstock, question: Line) -> list[Memory]:
    """Ask a plain vector search."""
    text, user = question["question"], question["user"]
    hits = await vectors_of(app).search_text(MEMORIES, text, 10, tenant="", user=user)
    return await memories_of(app).get_many([hit.id for hit in hits])


async def by_memory(app: Penstock, question: Line) -> list[Memory]:
    """Ask the memory as programs do."""
    found = await memories_of(app).search(
        question["question"], user=question["user"], k=10, count=False
    )
    return [each.memory for each in found]


WAYS = (
    Way("plain vector search", by_vectors),
    Way("memory", by_memory),
    Way("with consolidation", by_memory, consolidates=True),
    Way("with consolidation and decay", by_memory, consolidates=True, decays=True),
)


async def remember(app: Penstock, conversation: Line, labels: Labels, *, turns: bool) -> None:
    """Put in what was said in a conversation."""
    at = milliseconds(conversation["at"])
    said: list[tuple[str, set[str], int]] = []
    if turns:
        for number, turn in enumerate(conversation["turns"]):
            told = {fact["id"] for fact in conversation["facts"] if fact["turn"] == number}
            said.append((turn["text"], {labels.first(each) for each in told}, number))
    else:
        said += [
            (fact["text"], {labels.first(fact["id"])}, fact["turn"])
            for fact in conversation["facts"]
        ]
    added = await memories_of(app).add_many(
        [
            NewMemory(content=text, user_id=conversation["user"], at=at + 1_000 * number)
            for text, _, number in said
        ]
    )
    for each, (_, facts, _) in zip(added, said, strict=True):
        labels.of_memory[each.memory.id] |= facts


def scored(question: Line, results: Sequence[set[str]], labels: Labels, *, turns: bool) -> Score:
    """Judge the results of one question."""
    answers = {labels.first(each) for each in question["answers"]}
    wrong = {labels.first(each) for each in question["wrong"]} - answers
    if turns:  # a wrong fact of an answer's own turn cannot be told from it
        together = [facts for facts in labels.of_memory.values() if facts & answers]
        wrong -= set().union(*together) if together else set()
    recall = {
        depth: len(answers & set().union(*results[:depth])) / len(answers) for depth in DEPTHS
    }
    places = {fact: n for n, facts in reversed(list(enumerate(results))) for fact in facts}
    first = min((places[each] for each in answers if each in places), default=len(results))
    misled = any(places.get(each, len(results)) < first for each in wrong)
    return Score(question["kind"], question["user"], recall, misled if wrong else None)


async def measure(way: Way, *, turns: bool) -> tuple[list[Score], tuple[int, int, int]]:
    """Ask every question; return how each was answered, and which changes were found."""
    conversations, questions = read("conversations.jsonl"), read("questions.jsonl")
    labels = Labels(conversations)
    scores: list[Score] = []
    with tempfile.TemporaryDirectory() as folder:
        own = {"folder": f"{folder}/agents", "schedules": False}
        clock = FakeClock(conversations[0]["at"])
        async with Penstock(
            f"sqlite:///{folder}/memory.db",
            extensions=["agents"],
            settings=Settings(extension={"agents": own}),
            clock=clock,
        ) as app:
            waiting = list(conversations)
            for asked_at in sorted({question["asked_at"] for question in questions}):
                while waiting and waiting[0]["at"] < asked_at:
                    clock.set_wall(waiting[0]["at"])
                    await remember(app, waiting.pop(0), labels, turns=turns)
                clock.set_wall(asked_at)
                if way.consolidates:
                    await memories_of(app).consolidate()
                if way.decays:
                    agents = app.extensions.namespace("agents")
                    await agents.enqueue("memory-importance-decay", {"decayFactor": 0.99})
                await drain(app)
                for question in (each for each in questions if each["asked_at"] == asked_at):
                    results = [labels.of(memory) for memory in await way.ask(app, question)]
                    scores.append(scored(question, results, labels, turns=turns))
            changes = await superseded(app, labels)
    return scores, changes


async def superseded(app: Penstock, labels: Labels) -> tuple[int, int, int]:
    """How many changes of facts were found, how many of them are labelled so, of how many."""
    old = await memories_of(app).list(MemoryFilter(current=False, limit=1_000))
    right = found = 0
    for memory in old:
        facts = labels.of_memory.get(memory.id, set())
        for edge in await memories_of(app).edges(memory.id):
            if edge.edge_type == "supersedes" and edge.target == memory.id:
                newer = labels.of_memory.get(edge.source, set())
                links = {labels.facts[each].get("supersedes") for each in newer}
                found += 1
                right += bool(links & facts)
    labelled = sum(fact["supersedes"] is not None for fact in labels.facts.values())
    return found, right, labelled


def line(name: str, scores: Sequence[Score]) -> str:
    """One row of a table."""
    judged = [score.astray for score in scores if score.astray is not None]
    recalls = [sum(score.recall[depth] for score in scores) / len(scores) for depth in DEPTHS]
    astray = sum(judged) / len(judged) if judged else 0.0
    shares = " | ".join(f"{each:.3f}" for each in recalls)
    return f"| {name} | {len(scores)} | {shares} | {astray:.3f} |"


async def main() -> None:
    """Measure every way, by facts and by turns, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", action="store_true", help="a row for each kind of question")
    parser.add_argument("--facts", action="store_true", help="by facts only")
    told = parser.parse_args()
    print_figures_only()
    for turns in (False,) if told.facts else (False, True):
        _CONSOLE.print(f"\n### By {'turns' if turns else 'facts'}\n")
        _CONSOLE.print("| | questions | recall@1 | recall@5 | recall@10 | led astray |")
        _CONSOLE.print("|---|---|---|---|---|---|")
        for way in WAYS:
            scores, changes = await measure(way, turns=turns)
            _CONSOLE.print(line(f"**{way.name}**", scores))
            others = [score for score in scores if score.user not in LOOKED_AT]
            _CONSOLE.print(line("of users not looked at", others))
            if told.kinds:
                for kind in KINDS:
                    _CONSOLE.print(line(kind, [each for each in scores if each.kind == kind]))
            if way.consolidates and not way.decays and not turns:
                found, right, labelled = changes
                note = f"changes found: {found}, {right} of them labelled so, of {labelled}"
                _CONSOLE.print(f"| {note} | | | | | |")


if __name__ == "__main__":
    asyncio.run(main())
