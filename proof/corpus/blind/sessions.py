"""Turn sessions.txt into sessions.jsonl and check that each phrase of evidence occurs in its conversation."""

# ruff: noqa: D103, E501, SIM905, T201 - a script that prints a count

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROLES = {"U": "user", "A": "assistant", "T": "tool"}
WORDS = set(
    "pattern best_practice anti_pattern bug_fix optimization tool_usage workflow decision".split()
)


def main() -> None:
    sessions: list[dict[str, Any]] = []
    for line in (HERE / "sessions.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("== "):
            sessions.append({"id": line[3:], "messages": [], "planted": []})
        elif line.startswith("! "):
            category, gist, evidence = (part.strip() for part in line[2:].split("|", 2))
            sessions[-1]["planted"].append(
                {
                    "category": category,
                    "gist": gist,
                    "evidence": [e.strip() for e in evidence.split("‖")],
                }
            )
        elif line and not line.startswith("# "):
            role, content = line.split(": ", 1)
            sessions[-1]["messages"].append(
                {"role": ROLES[role], "content": content.replace("⏎", "\n")}
            )
    for s in sessions:
        assert 8 <= len(s["messages"]) <= 30, (s["id"], len(s["messages"]))
        assert len(s["planted"]) <= 4, s["id"]
        for p in s["planted"]:
            assert p["category"] in WORDS, p
            for e in p["evidence"]:
                assert any(e in m["content"] for m in s["messages"]), (s["id"], e)
    (HERE / "sessions.jsonl").write_text(
        "".join(json.dumps(s, ensure_ascii=False) + "\n" for s in sessions), encoding="utf-8"
    )
    planted = [p["category"] for s in sessions for p in s["planted"]]
    print(
        len(sessions),
        "sessions",
        len(planted),
        "planted",
        dict(Counter(planted)),
        [len(s["messages"]) for s in sessions],
    )


if __name__ == "__main__":
    main()
