"""Shows where the tests spend their time: `python tools/test_times.py [--tier all] [PYTEST ARGS]`.

Runs the tests of a tier and prints processor seconds, wall seconds and cases per folder and tier,
and the dearest cases. `--from FILE` reads an earlier recording instead of running anything.
`tests/support/times.py` records the cases and says what its figures miss.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Column, Table

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "build" / "test-times.jsonl"
TIERS = ("test", "all", "long", "outside")
SPLIT = ("apps", "server", "store")
"""Folders of tests/ whose subfolders have rows of their own."""
DEAREST = 20
SESSION = "session"


class CaseTime(NamedTuple):
    """The time that one case took."""

    nodeid: str
    tier: str
    wall_s: float
    cpu_s: float


class Total(NamedTuple):
    """The sums over a group of cases."""

    name: str
    cpu_s: float
    cpu_percent: float
    wall_s: float
    cases: int


def read_recording(path: Path) -> list[CaseTime]:
    """Read the cases that a run recorded."""
    return [CaseTime(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def folder_of(case: CaseTime) -> str:
    """Return the folder that the case counts for: one level of tests/, or two for large ones."""
    if case.tier == SESSION:
        return "(session servers)"
    folders = Path(case.nodeid.partition("::")[0]).parts[:-1]
    depth = 3 if len(folders) > 1 and folders[1] in SPLIT else 2
    return "/".join(folders[:depth])


def total_by(cases: Iterable[CaseTime], group_of: Callable[[CaseTime], str]) -> list[Total]:
    """Sum the times of each group, dearest in processor time first."""
    groups: defaultdict[str, list[CaseTime]] = defaultdict(list)
    for case in cases:
        groups[group_of(case)].append(case)
    all_cpu_s = sum(case.cpu_s for members in groups.values() for case in members)
    totals = [
        Total(
            name,
            cpu_s=round(cpu_s := sum(case.cpu_s for case in members), 3),
            cpu_percent=round(100 * cpu_s / all_cpu_s, 1) if all_cpu_s else 0.0,
            wall_s=round(sum(case.wall_s for case in members), 3),
            cases=sum(case.tier != SESSION for case in members),
        )
        for name, members in groups.items()
    ]
    return sorted(totals, key=lambda total: (-total.cpu_s, total.name))


def dearest(cases: Iterable[CaseTime]) -> list[CaseTime]:
    """Return the cases that took the most processor time."""
    ran = (case for case in cases if case.tier != SESSION)
    return sorted(ran, key=lambda case: (-case.cpu_s, case.nodeid))[:DEAREST]


def to_json(cases: Sequence[CaseTime]) -> str:
    """Return the figures for scripts."""
    return json.dumps(
        {
            "folders": [total._asdict() for total in total_by(cases, folder_of)],
            "tiers": [total._asdict() for total in total_by(cases, lambda case: case.tier)],
            "dearest": [case._asdict() for case in dearest(cases)],
            "total": [total._asdict() for total in total_by(cases, lambda _: "total")],
        },
        indent=2,
    )


def print_tables(cases: Sequence[CaseTime], console: Console) -> None:
    """Print the figures for people."""
    whole = total_by(cases, lambda _: "total")
    for title, totals in (
        ("Folder", [*total_by(cases, folder_of), *whole]),
        ("Tier", total_by(cases, lambda case: case.tier)),
    ):
        table = Table(title, *_numbers("CPU s", "CPU %", "Wall s", "Cases"))
        for total in totals:
            table.add_row(
                total.name,
                f"{total.cpu_s:.1f}",
                f"{total.cpu_percent:.1f}",
                f"{total.wall_s:.1f}",
                str(total.cases),
            )
        console.print(table)
    table = Table(Column("Dearest cases", overflow="fold"), "Tier", *_numbers("CPU s", "Wall s"))
    for case in dearest(cases):
        table.add_row(case.nodeid, case.tier, f"{case.cpu_s:.2f}", f"{case.wall_s:.2f}")
    console.print(table)


def _numbers(*headings: str) -> list[Column]:
    return [Column(heading, justify="right") for heading in headings]


def record(tier: str, path: Path, pytest_args: Sequence[str], quiet: bool) -> int:
    """Run the tests of a tier and record their times; return pytest's exit code."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "4", "--dist", "worksteal", *pytest_args],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_TIER": tier, "PENSTOCK_TEST_TIMES": str(path)},
        stdout=sys.stderr if quiet else None,
        check=False,
    ).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests or read a recording, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tier", choices=TIERS, default="all")
    parser.add_argument("--from", dest="source", type=Path, help="read this recording, run nothing")
    parser.add_argument("--out", type=Path, default=RECORDING, help="where to record the cases")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options, pytest_args = parser.parse_known_args(arguments)
    exit_code = 0
    path: Path = options.source or options.out
    if not options.source:
        exit_code = record(options.tier, path, pytest_args, quiet=options.json)
    if not path.exists():
        print(f"{path} does not exist: no case was recorded.", file=sys.stderr)
        return exit_code or 1
    cases = read_recording(path)
    if options.json:
        print(to_json(cases))
    else:
        print_tables(cases, Console())
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
