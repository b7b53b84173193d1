"""Checks the labelled set for the quality of memory and prints its counts."""

import json
import re
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KINDS = ("plain", "changed", "date", "name", "negation", "past", "several", "paraphrase")
LEAST_CONVERSATIONS, LEAST_QUESTIONS, LEAST_OF_A_KIND = 50, 220, 25
# Words that carry grammar, not content; a paraphrase may share them with its fact.
GRAMMAR = frozenset(
    re.findall(
        r"\w+",
        """
        a about after again all also am an and any anyone anything are as at be because been before
        being both but by can come could did do does doing done each else ever every everything for
        from get gets getting go goes got had has have having he her hers him his how i if in
        instead into is it its just less long made make makes many me more most much my no nobody
        none nor not nothing now of off on once one only or other our out over own per she should so
        some somebody someone something still such take takes taken than that the their them then
        there these they this those to too under until up upon us use used uses very was we were
        what when where which while who whom whose why will with without would yet you your s t
        """,
    )
)

Line = dict[str, Any]


def lines(name: str) -> list[Line]:
    """The lines of a file of the set."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def content_words(text: str, user: str) -> set[str]:
    """The words with content, cut so that forms of one word are one, without the user's name."""
    found = re.findall(r"[^\W_]+", text.lower())
    return {stem(word) for word in found if word not in GRAMMAR and word != user}


def stem(word: str) -> str:
    """The beginning of a word that its forms share, roughly."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:6].rstrip("ey")


def conversation_faults(conversation: Line) -> list[str]:
    """What is wrong with the turns of a conversation and the numbers of its facts."""
    name, turns = conversation["id"], conversation["turns"]
    faults = []
    if not 6 <= len(turns) <= 14:
        faults.append(f"{name} has {len(turns)} turns, not 6 to 14")
    expected = ["user" if number % 2 == 0 else "assistant" for number in range(len(turns))]
    if [turn["role"] for turn in turns] != expected:
        faults.append(f"{name}: user and assistant do not take turns")
    for number, fact in enumerate(conversation["facts"], 1):
        if fact["id"] != f"{name}.f{number}":
            faults.append(f"{fact['id']} should be {name}.f{number}")
        if not 0 <= fact["turn"] < len(turns):
            faults.append(f"{fact['id']} names turn {fact['turn']}, which {name} does not have")
    return faults


def link_faults(facts: dict[str, Line]) -> list[str]:
    """A fact replaces or repeats an earlier one of the same user, and no fact is replaced twice."""
    faults = []
    replaced: Counter[str] = Counter()
    for name, fact in facts.items():
        for link in ("supersedes", "restates"):
            target = fact.get(link)
            if target is None:
                continue
            if target not in facts:
                faults.append(f"{name} {link} {target}, which does not exist")
                continue
            if facts[target]["user"] != fact["user"] or facts[target]["when"] >= fact["when"]:
                faults.append(
                    f"{name} {link} {target}, which is not an earlier fact of {fact['user']}"
                )
        if fact["supersedes"] is not None:
            replaced[fact["supersedes"]] += 1
    faults += [
        f"{name} is superseded {count} times" for name, count in replaced.items() if count > 1
    ]
    return faults


def question_faults(question: Line, facts: dict[str, Line]) -> list[str]:
    """What is wrong with a question: its kind, its facts or its words."""
    name, user, kind = question["id"], question["user"], question["kind"]
    answers, wrong = question["answers"], question["wrong"]
    unknown = [fact for fact in answers + wrong if fact not in facts]
    if unknown:
        return [f"{name} names {', '.join(unknown)}, which do not exist"]
    faults = []
    if kind not in KINDS:
        faults.append(f"{name} is of the unknown kind {kind}")
    if not answers or len(set(answers + wrong)) < len(answers + wrong):
        faults.append(f"{name} has no answer, or names a fact twice")
    for fact in answers + wrong:
        if facts[fact]["user"] != user:
            faults.append(f"{name} is of {user}, its fact {fact} is not")
        if facts[fact]["at"] >= question["asked_at"]:
            faults.append(f"{name} is asked before {fact} was said")
    stale = {fact["supersedes"] for fact in facts.values()} - {None}
    if kind == "several" and not 2 <= len(answers) <= 3:
        faults.append(f"{name} needs {len(answers)} facts, not 2 or 3")
    if kind == "changed" and (not set(wrong) & stale or set(answers) & stale):
        faults.append(
            f"{name}: a changed fact's answer is the newest one, and a stale one is wrong"
        )
    if kind == "past" and not set(answers) <= stale:
        faults.append(f"{name}: the answer to a question about the past is a superseded fact")
    return faults + wording_faults(question, facts)


def wording_faults(question: Line, facts: dict[str, Line]) -> list[str]:
    """A paraphrase shares no content word with its answers, no question nearly all."""
    asked = content_words(question["question"], question["user"])
    faults = []
    for answer in question["answers"]:
        said = content_words(facts[answer]["text"], question["user"])
        shared = sorted(asked & said)
        if question["kind"] == "paraphrase" and shared:
            faults.append(f"{question['id']} shares {', '.join(shared)} with {answer}")
        if len(said) > 3 and len(shared) > 0.7 * len(said):
            faults.append(f"{question['id']} copies {answer}: {', '.join(shared)}")
    return faults


def set_faults(conversations: list[Line], questions: list[Line]) -> list[str]:
    """What is wrong with the set as a whole: order, names, counts, addresses."""
    faults = []
    times = [conversation["at"] for conversation in conversations]
    for time in times + [question["asked_at"] for question in questions]:
        datetime.strptime(time, "%Y-%m-%dT%H:%M:%S%z")
    if times != sorted(times) or len(set(times)) < len(times):
        faults.append("the conversations are not ordered by time, or two are at the same time")
    for rows, what in ((conversations, "conversation"), (questions, "question")):
        names = Counter(row["id"] for row in rows)
        faults += [f"two {what}s are called {name}" for name, count in names.items() if count > 1]
    asked = Counter(" ".join(re.findall(r"\w+", row["question"].lower())) for row in questions)
    faults += [f"asked {count} times: {text}" for text, count in asked.items() if count > 1]
    if len(conversations) < LEAST_CONVERSATIONS or len(questions) < LEAST_QUESTIONS:
        faults.append(f"only {len(conversations)} conversations and {len(questions)} questions")
    kinds = Counter(row["kind"] for row in questions)
    faults += [
        f"only {kinds[kind]} questions are {kind}"
        for kind in KINDS
        if kinds[kind] < LEAST_OF_A_KIND
    ]
    everything = json.dumps([conversations, questions])
    addresses = re.findall(r"[\w.+-]+@[\w.-]+\w", everything)
    faults += [
        f"{address} is not at example.org"
        for address in addresses
        if not address.endswith("@example.org")
    ]
    return faults


def main() -> int:
    """Prints counts and faults; 1 if there are any."""
    conversations, questions = lines("conversations.jsonl"), lines("questions.jsonl")
    facts = {
        fact["id"]: fact | {"user": each["user"], "at": each["at"], "when": (each["at"], number)}
        for each in conversations
        for number, fact in enumerate(each["facts"])
    }
    faults = set_faults(conversations, questions) + link_faults(facts)
    for conversation in conversations:
        faults += conversation_faults(conversation)
    for question in questions:
        faults += question_faults(question, facts)
    changed = sum(fact["supersedes"] is not None for fact in facts.values())
    again = sum("restates" in fact for fact in facts.values())
    users = len({conversation["user"] for conversation in conversations})
    turns = sum(len(conversation["turns"]) for conversation in conversations)
    kinds = Counter(question["kind"] for question in questions)
    report = [
        f"{len(conversations)} conversations of {users} users, {turns} turns",
        f"{len(facts)} facts: {changed} supersede another, {again} restate another",
        f"{len(questions)} questions: " + ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS),
        *(faults or ["no faults"]),
    ]
    sys.stdout.write("\n".join(report) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
