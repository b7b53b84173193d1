"""Write lines.jsonl: the contexts, filled with made-up values, labelled as they are filled.

python -m proof.corpus.own.write
"""

import base64
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from proof.corpus.own import contexts, values

HERE = Path(__file__).parent
SEED = 20_261_116
SLOT = re.compile(r"«(\w+)»|‹(\w+)›")
EACH = 6
"""A context is filled so many times; one of a trap or a token less often."""


def fill(text: str, category: str, chance: random.Random, token: str = "") -> dict[str, Any]:
    """A line: its slots filled, what must go labelled."""
    text = text.replace(r"\\", "\0").replace(r"\n", "\n").replace("\0", "\\")
    parts: list[str] = []
    found: list[dict[str, Any]] = []
    at = size = 0
    same: dict[str, str] = {}
    for slot in SLOT.finditer(text):
        parts.append(text[at : slot.start()])
        size += len(parts[-1])
        labelled, plain = slot.groups()
        name = labelled or plain
        if name == "token":
            value, own = token, category
        elif name in values.PLAIN:
            value, own = values.PLAIN[name](chance), ""
        else:
            own, make = values.VALUES[name]
            value = same.setdefault(name, make(chance)) if name == "pemkind" else make(chance)
        if labelled and name not in ("name", "pemkind"):
            kind = category if category and (own in ("", "generic_secret") or not own) else own
            found.append({"start": size, "end": size + len(value), "category": kind})
        parts.append(value)
        size += len(value)
        at = slot.end()
    parts.append(text[at:])
    return {"text64": base64.b64encode("".join(parts).encode()).decode(), "found": found}


def made() -> list[dict[str, Any]]:
    """All lines, the same ones every time."""
    chance = random.Random(SEED)
    lines: list[dict[str, Any]] = []
    around = [each.split("|", 1) for each in contexts.AROUND_TOKENS.strip().splitlines()]
    for category, token in values.tokens(chance):
        for kind, text in chance.sample(around, 4):
            lines.append({**fill(text, category, chance, token), "kind": kind})
    for each in contexts.GENERIC.strip().splitlines():
        kind, text = each.split("|", 1)
        lines += [{**fill(text, "", chance), "kind": kind} for _ in range(EACH)]
    for each in (contexts.HEADERS + contexts.PEOPLE.strip()).strip().splitlines():
        category, kind, text = each.split("|", 2)
        alone = category if each in contexts.HEADERS else ""
        lines += [{**fill(text, alone, chance), "kind": kind} for _ in range(EACH)]
    for each in contexts.TRAPS.strip().splitlines():
        trap, kind, text = each.split("|", 2)
        times = 4 if "‹" in text else 1
        lines += [{**fill(text, "", chance), "kind": kind, "trap": trap} for _ in range(times)]
    return lines


def main() -> None:
    """Write the file and say what is in it."""
    lines = made()
    (HERE / "lines.jsonl").write_bytes(
        b"".join(msgspec.json.encode(each) + b"\n" for each in lines)
    )
    counts = Counter(label["category"] for line in lines for label in line["found"])
    clean = sum(not line["found"] for line in lines)
    sys.stdout.write(f"{len(lines)} lines, {clean} of them clean, {sum(counts.values())} labels\n")


if __name__ == "__main__":
    main()
