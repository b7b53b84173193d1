"""Turn a folder's sessions.txt into its sessions.jsonl: `python proof/corpus/sessions.py blind`."""

# ruff: noqa: D103, SIM905, T201 - a script that prints a count

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROLES = {"U": "user", "A": "assistant", "T": "tool"}
CATEGORIES = set(
    "pattern best_practice anti_pattern bug_fix optimization tool_usage workflow decision".split()
)


def main() -> None:
    folder = Path(__file__).parent / sys.argv[1]
    sessions = read((folder / "sessions.txt").read_text(encoding="utf-8"))
    for session in sessions:
        check(session)
    (folder / "sessions.jsonl").write_text(
        "".join(json.dumps(session, ensure_ascii=False) + "\n" for session in sessions),
        encoding="utf-8",
    )
    planted = [each["category"] for session in sessions for each in session["planted"]]
    print(len(sessions), "sessions,", len(planted), "planted:", dict(Counter(planted)))


def read(text: str) -> list[dict[str, Any]]:
    sessions: list[dict[str, Any]] = []
    for line in text.split("\n"):
        if line.startswith("== "):
            sessions.append({"id": line[3:], "messages": [], "planted": []})
        elif line.startswith("! "):
            category, gist, evidence = (part.strip() for part in line[2:].split("|", 2))
            quotes = [quote.strip() for quote in evidence.split("‖")]
            sessions[-1]["planted"].append({"category": category, "gist": gist, "evidence": quotes})
        elif line and not line.startswith("# "):
            role, content = line.split(": ", 1)
            sessions[-1]["messages"].append(
                {"role": ROLES[role], "content": content.replace("⏎", "\n")}
            )
    return sessions


def check(session: dict[str, Any]) -> None:
    """Refuse a category that does not exist, and evidence that nobody said."""
    assert 8 <= len(session["messages"]) <= 30, (session["id"], len(session["messages"]))
    for planted in session["planted"]:
        assert planted["category"] in CATEGORIES, planted
        for quote in planted["evidence"]:
            assert any(quote in each["content"] for each in session["messages"]), (
                session["id"],
                quote,
            )


if __name__ == "__main__":
    main()
