"""How well learnings are found without a model: planted ones found, and what is found besides.

    python -m proof.learnings

A session of `proof/corpus/*/sessions.jsonl` says what was planted in it: a gist, and the words of
the conversation that say it. A learning is one of those if it has most of the words of either.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from penstock.apps.recorder.dedupe import canonical
from penstock.apps.recorder.extract import VALUE_GATE, extract, value_of
from penstock.apps.recorder.learnings import Found
from penstock.apps.recorder.likelihood import Conversation, Said, features

CORPUS = Path(__file__).parent / "corpus"
QUOTED = 0.6
TOLD = 0.5
_STOPPED = "a an and are as at be by for from in is it of on or so that the to was we with"
_STOP = frozenset(_STOPPED.split())
TUNED_ON = (CORPUS / "own/sessions.jsonl", CORPUS / "blind/sessions.jsonl")
"""Weights are fitted to these; all others are measured alone."""
SENTENCE = 3
_CONSOLE = Console(markup=False, highlight=False, soft_wrap=True)


class Measured(NamedTuple):
    """What was planted, what of it was found, and what was found in all."""

    planted: int
    found: int
    learnings: int
    junk: int

    @property
    def recall(self) -> float:
        """The share of what was planted that was found."""
        return self.found / max(1, self.planted)

    @property
    def junk_share(self) -> float:
        """The share of what was found that nobody planted."""
        return self.junk / max(1, self.learnings)


def measure(path: Path, show: bool = False) -> Measured:
    """Look through the sessions of a file."""
    planted = found = learnings = junk = 0
    for line in path.read_text("utf-8").splitlines():
        session = json.loads(line)
        messages = _messages(session)
        learned = extract(messages) if value_of(messages) >= VALUE_GATE else []
        hits = [[fits(one, each) for each in session["planted"]] for one in learned]
        planted += len(session["planted"])
        found += sum(any(row[n] for row in hits) for n in range(len(session["planted"])))
        learnings += len(learned)
        junk += sum(not any(row) for row in hits)
        if show:
            _show(session, learned, hits)
    return Measured(planted, found, learnings, junk)


def _messages(session: dict[str, Any]) -> list[Said]:
    told = session["messages"]
    return [Said(str(n), each["role"], each["content"]) for n, each in enumerate(told)]


def fits(learning: Found, planted: dict[str, Any]) -> bool:
    """Whether a learning says what was planted."""
    said = _words(f"{learning.title} {learning.content}")
    quoted = max((_share(_words(each), said) for each in planted["evidence"]), default=0.0)
    return quoted >= QUOTED or _share(_words(planted["gist"]), said) >= TOLD


def _share(wanted: frozenset[str], said: frozenset[str]) -> float:
    return len(wanted & said) / max(1, len(wanted))


def _words(text: str) -> frozenset[str]:
    return frozenset(canonical(text).split()) - _STOP


def _show(session: dict[str, Any], learned: Sequence[Found], hits: Sequence[list[bool]]) -> None:
    _CONSOLE.print(f"\n{session['id']}")
    for one, row in zip(learned, hits, strict=True):
        _CONSOLE.print(
            f"  {'+' if any(row) else 'JUNK'} {one.confidence} {one.category}: {one.content}"
        )
    for n, each in enumerate(session["planted"]):
        if not any(row[n] for row in hits):
            _CONSOLE.print(f"  MISSED {each['category']}: {each['gist']}")


def fit(
    paths: Sequence[Path] = TUNED_ON, penalty: float = 30.0, steps: int = 3_000
) -> tuple[float, dict[str, float]]:
    """The bias and the weights under which what was planted is likeliest: a logistic regression."""
    import numpy

    rows: list[list[float]] = []
    planted: list[float] = []
    names: list[str] = []
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            session = json.loads(line)
            conversation = Conversation(_messages(session))
            for n, told in enumerate(conversation.sentences):
                for at, sentence in enumerate(told):
                    known = features(conversation, n, at)
                    names = list(known)
                    rows.append(list(known.values()))
                    planted.append(float(any(_says(sentence, each) for each in session["planted"])))
    table, wanted = numpy.array(rows), numpy.array(planted)
    mean, spread = table.mean(0), table.std(0) + 1e-6
    usual = (table - mean) / spread
    weights, bias = numpy.zeros(len(names)), 0.0
    for _ in range(steps):
        miss = 1 / (1 + numpy.exp(-(usual @ weights + bias))) - wanted
        weights -= 0.3 * (usual.T @ miss + penalty * weights) / len(wanted)
        bias -= 0.3 * float(miss.mean())
    shown = {name: round(float(w), 2) for name, w in zip(names, weights / spread, strict=True)}
    return round(bias - float((weights * mean / spread).sum()), 2), shown


def _says(sentence: str, planted: dict[str, Any]) -> bool:
    """Whether a sentence is what shows that something was planted, or says its gist."""
    words = _words(sentence)
    for quote in planted["evidence"]:
        if quote in sentence or (sentence in quote and len(words) >= SENTENCE):
            return True
        if _share(_words(quote), words) >= QUOTED:
            return True
    return _share(_words(planted["gist"]), words) >= TOLD


def main() -> None:
    """Print the figures of every file; with its name what was found in one; `--fit` weights."""
    if "--fit" in sys.argv[1:]:
        _CONSOLE.print(fit())
        return
    for path in sorted(CORPUS.glob("*/sessions.jsonl")):
        chosen = path.parent.name in sys.argv[1:]
        told = measure(path, show=chosen)
        _CONSOLE.print(
            f"{path.parent.name}: {told.found} of {told.planted} planted found "
            f"({told.recall:.0%}), {told.junk} of {told.learnings} learnings junk "
            f"({told.junk_share:.0%})"
        )


if __name__ == "__main__":
    main()
