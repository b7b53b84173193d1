"""Fit the weights by which the sanitiser tells how likely a word is a secret.

    python -m proof.likely            how well an author's words are told after all others'
    python -m proof.likely --fit      fit them to all lines, and write them down

Each corpus has an author of its own, so what is left out is text by somebody else. The lines tell
which words are secrets. Of what holds hardly any there is more: our own code and documentation, and
the packages that developing takes, of the versions that are locked.
"""

import base64
import random
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.apps.recorder.sanitise import likely
from proof.sanitiser import HALVES, Line, is_secret, lines

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "src/penstock/apps/recorder/sanitise/weights.py"
SCALE = 64
BARS = (-0.75, 0.25)
"""Where a word counts as a secret: a short one, and a long one, which may be an id as well."""
PER_WORD = 80
ROUNDS, RATE, DECAY, BATCH = 60, 0.1, 2.5e-5, 256
CODE = 0.3
"""What a word of code counts, beside one of the lines."""
OTHERS, LONGEST = 4_000, 100_000
"""So many files of others are read, and so much of each."""


class Words(NamedTuple):
    """Words as the checksums of their traits, and which of them are secrets."""

    traits: list[list[int]]
    secret: list[bool]
    long: list[bool]


def of_text(data: bytes) -> list[tuple[int, int, list[int]]]:
    """The words of a text that are weighed."""
    made = []
    for begin, end in likely.words(data):
        around = likely.telling(data, begin, end)
        if around:
            made.append((begin, end, likely.places(likely.traits(data, begin, end, around))))
    return made


def of_lines(half: str) -> Words:
    """The words of a corpus; one that is only a part of a label, or personal, is neither."""
    words = Words([], [], [])
    for line in lines(half):
        labels = _in_bytes(line)
        for begin, end, traits in of_text(line.text.encode()):
            secret = _is_label(begin, end, labels)
            if secret is not None:
                words.traits.append(traits)
                words.secret.append(secret)
                words.long.append(end - begin >= likely.LONG)
    return words


def _in_bytes(line: Line) -> list[tuple[int, int, str]]:
    return [
        (len(line.text[:start].encode()), len(line.text[:end].encode()), category)
        for start, end, category in line.labels
    ]


def _is_label(begin: int, end: int, labels: list[tuple[int, int, str]]) -> bool | None:
    touched = [each for each in labels if each[0] < end and begin < each[1]]
    for start, stop, category in touched:
        both = min(end, stop) - max(begin, start)
        if is_secret(category) and both >= 0.8 * (stop - start) and both >= 0.6 * (end - begin):
            return True
    return None if touched else False


def of_code() -> Words:
    """Words of our own code and documentation, and some of the code of others."""
    own = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md")]
    others = [
        each
        for each in Path(np.__file__).parents[1].glob("*/**/*.py")
        if not any("test" in part for part in each.parts[-4:])
    ]
    files = [each for each in sorted(own) if "sanitise" not in each.parts]
    files += random.Random(2).sample(sorted(others), min(len(others), OTHERS))
    traits = [each for file in files for *_, each in of_text(file.read_bytes()[:LONGEST])]
    return Words(traits, [False] * len(traits), [False] * len(traits))


def fitted(parts: list[Words], code: Words) -> NDArray[np.float64]:
    """The weights, by logistic regression (AdaGrad), the same in every run."""
    traits = padded([each for part in parts for each in part.traits] + code.traits)
    secret = np.array([each for part in parts for each in part.secret] + code.secret, float)
    counts = np.ones(len(secret))
    counts[len(secret) - len(code.secret) :] = CODE
    weights = np.zeros(likely.SIZE + 1)
    seen = np.full(likely.SIZE + 1, 1e-3)
    order = random.Random(1)
    for _ in range(ROUNDS):
        shuffled = np.array(order.sample(range(len(secret)), len(secret)))
        for some in np.array_split(shuffled, max(1, len(secret) // BATCH)):
            chance = 1 / (1 + np.exp(-weights[traits[some]].sum(1)))
            error = (chance - secret[some]) * counts[some]
            slope = DECAY * len(some) * weights + np.bincount(
                traits[some].ravel(), np.repeat(error, PER_WORD), likely.SIZE + 1
            )
            slope[-1] = 0
            seen += slope * slope
            weights -= RATE * slope / np.sqrt(seen)
    return weights


def padded(traits: list[list[int]]) -> NDArray[np.int32]:
    """The traits of words as rows of one length; what fills them has no weight."""
    rows = np.full((len(traits), PER_WORD), likely.SIZE, np.int32)
    for row, each in zip(rows, traits, strict=True):
        row[: len(each)] = each
    return rows


def left_out(half: str, parts: dict[str, Words], code: Words) -> tuple[float, float]:
    """Recall and precision on the words of one author, after those of all others were seen."""
    weights = fitted([part for name, part in parts.items() if name != half], code)
    words = parts[half]
    score = weights[padded(words.traits)].sum(1) - np.array(BARS)[np.array(words.long, int)]
    taken, secret = score > 0, np.array(words.secret)
    return (taken & secret).sum() / secret.sum(), (taken & secret).sum() / max(1, taken.sum())


def write(weights: NDArray[np.float64]) -> None:
    """Write the weights down, a byte each."""
    whole = np.clip(np.rint(weights[:-1] * SCALE), -127, 127).astype(int)
    text = base64.b64encode(bytes((whole + likely.MIDDLE).tolist())).decode()
    rows = "\n".join(f'    b"{text[at : at + 92]}"' for at in range(0, len(text), 92))
    bars = ", ".join(str(round(each * SCALE)) for each in BARS)
    WEIGHTS.write_text(
        '"""The weights of traits; made by `python -m proof.likely --fit`, not by hand."""\n\n'
        "from binascii import a2b_base64\n\n"
        f"BARS = ({bars})\n"
        f"WEIGHTS = a2b_base64(\n{rows}\n)  # fmt: skip\n"
    )


def main(arguments: list[str]) -> None:
    """Measure, or fit."""
    parts = {half: of_lines(half) for half in HALVES}
    code = of_code()
    if "--fit" in arguments:
        write(fitted(list(parts.values()), code))
        return
    for half in HALVES:
        recall, precision = left_out(half, parts, code)
        sys.stdout.write(
            f"{half:10} {sum(parts[half].secret):5} secrets of {len(parts[half].secret):5} words:"
            f" recall {recall:.3f}, precision {precision:.3f}\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
