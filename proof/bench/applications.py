"""`make bench-recorder` and `make bench-agents`: what the applications do, and how fast.

Each benchmark has a command of its own; this runs those of one application, one after the other,
and writes their part of the page.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from proof.bench.machine import busy_notes, facts
from proof.bench.page import AGENTS, RECORDER, find_checkout, write_part
from proof.bench.report import facts_table

BENCHMARKS: dict[str, dict[str, tuple[str, ...]]] = {
    RECORDER: {
        "The hook": ("proof.bench.hook",),
        "The sanitiser": ("proof.bench.sanitiser",),
        "Sessions and imports": ("proof.bench.recorder", "--megabytes", "300"),
        "Jobs": ("proof.bench.learnings",),
    },
    AGENTS: {
        "Mixed jobs": ("proof.bench.agents",),
        "Vectors": ("proof.bench.vectors",),
        "Consolidation": ("proof.bench.memory",),
        "Webhooks": ("proof.bench.webhooks",),
        "Quotas": ("proof.bench.quotas",),
        "What memory remembers": ("proof.memory",),
        "What a classifier forgets": ("proof.ewc",),
    },
}

_RULE = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)
"""The second line of a table."""


def main() -> None:
    """Measure, print, and write the part of the page that is about one application."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("application", choices=("recorder", "agents"))
    part = RECORDER if parser.parse_args().application == "recorder" else AGENTS
    machine = facts(Path(tempfile.gettempdir()))
    told = [_measure(title, words) for title, words in BENCHMARKS[part].items()]
    told.append("\n".join(["## Machine", "", *facts_table(machine), "", *busy_notes(machine)]))
    checkout = find_checkout()
    if checkout is not None:
        write_part(checkout / "benchmarks" / "RESULTS.md", part, "\n".join(told))


def _measure(title: str, words: tuple[str, ...]) -> str:
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures = done.stdout.strip()
    table = figures if _RULE.search(figures) else f"```\n{figures}\n```"
    section = f"## {title}\n\n{table}\n"
    sys.stdout.write(f"{section}\n")
    sys.stdout.flush()
    return section


if __name__ == "__main__":
    main()
