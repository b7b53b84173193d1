"""Measures what the tests catch: `python tools/mutate.py [--count 20] [--seed 28]`.

Draws mutations of the code (`tools/mutations.py`), applies each to a clone of HEAD and runs the
tests until one fails: the tests of the file, of its package, the first tier, and then what only the
second tier holds. A case that fails must fail again alone and pass without the mutation; otherwise
it is left out and the tests run again. Results are appended to `--out`; a run of the same commit
and seed continues where an earlier one stopped.

The clone has an environment of its own over the packages of this one. Processes that tests start
without an environment import the clone as well.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil

from tools.mutations import Mutation, draw

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "mutations.jsonl"
VENDOR = "src/penstock/server/dashboard/static/vendor"
"""Ignored by git, and needed by the pages."""
MOST_LEFT_OUT = 5
"""How many cases that fail by chance are left out before the next suite runs."""
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)


class Suite(NamedTuple):
    """The tests of one pytest run."""

    name: str
    tier: str
    paths: tuple[str, ...]
    timeout_s: float
    only_second_tier: bool = False


class Result(NamedTuple):
    """The outcome of a mutation; `tier` and `case` are None if it survived."""

    key: str
    place: str
    kind: str
    diff: str
    outcome: str
    tier: str | None = None
    case: str | None = None
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f" by {self.case} (tier {self.tier})" if self.tier else ""
        return f"{self.outcome}{by}: {self.place} [{self.kind}] {self.diff}"


class Failure(NamedTuple):
    """Why a run of pytest failed: a case, a timeout, or tests that could not be loaded."""

    outcome: str
    case: str


class Options(NamedTuple):
    """The options of the command line that a trial needs."""

    jobs: int
    timeout_s: float
    timeout_all_s: float
    only: tuple[str, ...]


def pytest_collection_modifyitems(config: "pytest.Config", items: list["pytest.Item"]) -> None:
    """Leave out the first tier, in runs that load this file with `-p tools.mutate`."""
    from tests.support.tiers import tier_of

    first = [item for item in items if tier_of(item) == "test"]
    config.hook.pytest_deselected(items=first)
    items[:] = [item for item in items if tier_of(item) != "test"]


def suites_for(mutation: Mutation, clone: Path, options: Options) -> Iterator[Suite]:
    """Yield the tests to run, the most likely to fail first."""
    if options.only:
        yield Suite("given", "test", options.only, options.timeout_s)
        return
    for path in related_tests(mutation.path, clone):
        yield Suite(path, "test", (path,), options.timeout_s)
    yield Suite("first tier", "test", (), options.timeout_s)
    yield Suite("second tier", "all", (), options.timeout_all_s, only_second_tier=True)


def related_tests(path: str, clone: Path) -> list[str]:
    """Return the tests that mirror a source file: its own file or folder, then its package's."""
    parts = Path(path).relative_to("src/penstock").with_suffix("").parts
    depth = 2 if parts[0] == "apps" else 1
    tests: list[str] = []
    for length in range(len(parts), depth - 1, -1):
        *folders, name = parts[:length]
        beside = Path("tests", *folders, f"test_{name}.py")
        folder = Path("tests", *folders, name)
        tests += [str(each) for each in (beside, folder) if (clone / each).exists()]
    # Two steps are enough: the nearest tests, and all of the package.
    return tests if len(tests) < 2 else [tests[0], tests[-1]]


class Clone:
    """A clone of HEAD with an environment that imports it, and no other Penstock."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "penstock"
        self.left_out: set[str] = set()
        """Cases that fail without a mutation."""
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.path)], check=True)
        if (ROOT / VENDOR).is_dir():
            shutil.copytree(ROOT / VENDOR, self.path / VENDOR)
        self.commit = subprocess.check_output(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=self.path, text=True
        ).strip()
        self._environment = folder / "environment"

    def prepare(self, options: Options) -> None:
        """Make the environment; raise if it imports other code or cannot load the tests."""
        venv.create(self._environment, with_pip=False, symlinks=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = self._environment / "lib" / version / "site-packages"
        paths = (self.path / "src", self.path, sysconfig.get_path("purelib"))
        (packages / "clone.pth").write_text("".join(f"{path}\n" for path in paths))
        file = subprocess.check_output(
            [self.python, "-c", "import penstock; print(penstock.__file__)"],
            text=True,
            env={},
            cwd="/",
        ).strip()
        if not Path(file).is_relative_to(self.path):
            raise RuntimeError(f"The tests would import {file}, not {self.path}/src.")
        suite = Suite("collection", "all", options.only, options.timeout_s)
        failure = self.run(suite, ["--collect-only"])
        if failure:
            raise RuntimeError(f"The tests cannot be loaded without a mutation: {failure.case}")

    @property
    def python(self) -> Path:
        """Return the interpreter that imports the clone."""
        return self._environment / "bin" / "python"

    def write(self, name: str, source: bytes) -> None:
        """Write a source file and remove its bytecode, which may have the same second and size."""
        path = self.path / name
        path.write_bytes(source)
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            cached.unlink()

    def run(self, suite: Suite, arguments: Sequence[str]) -> Failure | None:
        """Run tests; return None if all pass."""
        command = [str(self.python), "-m", "pytest", "-x", "-q", *arguments]
        if suite.only_second_tier:
            command += ["-p", "tools.mutate"]
        code, output = run_within(
            [*command, *suite.paths], suite.timeout_s, self.path, _variables(suite.tier)
        )
        return read_failure(code, output, suite)


def read_failure(code: int | None, output: str, suite: Suite) -> Failure | None:
    """Read the end of a pytest run; a code of None is a timeout."""
    if code is None:
        return Failure("caught by timeout", f"{suite.name}, after {suite.timeout_s:g} s")
    if code in (0, 5):
        return None
    failed = _FAILURE.search(output)
    if failed:
        return Failure("caught", failed[1])
    lines = output.strip().splitlines() or [f"exit code {code}"]
    return Failure("caught by import", lines[-1].strip())


def run_within(
    command: Sequence[str], timeout_s: float, folder: Path, variables: dict[str, str]
) -> tuple[int | None, str]:
    """Run a command; after the timeout, kill it with all its children and return None."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output,
        subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        code: int | None
        try:
            code = process.wait(timeout_s)
        except BaseException as error:
            kill_tree(process.pid)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
        output.seek(0)
        return code, output.read()


def kill_tree(pid: int) -> None:
    """Kill a process that this one started, and every process below it."""
    try:
        process = psutil.Process(pid)
        below = process.children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for each in (process, *below):
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue


def _variables(tier: str) -> dict[str, str]:
    dropped = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PENSTOCK_TEST_TIMES")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PENSTOCK_TIER": tier}


def trial_key(mutation: Mutation, commit: str, options: Options) -> str:
    """Return what a result is found by: the commit, the mutation and the tests it was given."""
    return " ".join((commit, mutation.key, *options.only))


def try_mutation(mutation: Mutation, clone: Clone, options: Options) -> Result:
    """Apply a mutation, run the suites until a case fails because of it, and undo it."""
    original = (clone.path / mutation.path).read_bytes()
    mutant = mutation.apply(original)
    by_chance: list[str] = []
    place = f"{mutation.path}:{mutation.line}"
    key = trial_key(mutation, clone.commit, options)
    result = Result(key, place, mutation.kind, mutation.diff, "survived")
    try:
        clone.write(mutation.path, mutant)
        for suite in suites_for(mutation, clone.path, options):
            for _ in range(MOST_LEFT_OUT):
                left_out = [f"--deselect={case}" for case in (*clone.left_out, *by_chance)]
                failure = clone.run(
                    suite, ["-n", str(options.jobs), "--dist", "worksteal", *left_out]
                )
                if failure is None:
                    break
                alone = suite._replace(paths=(failure.case,))
                if failure.outcome != "caught" or _is_caused(mutation, clone, alone, original):
                    return result._replace(
                        outcome=failure.outcome,
                        tier=suite.tier,
                        case=failure.case,
                        left_out=tuple(by_chance),
                    )
                by_chance.append(failure.case)
    finally:
        clone.write(mutation.path, original)
    return result._replace(left_out=tuple(by_chance))


def _is_caused(mutation: Mutation, clone: Clone, alone: Suite, original: bytes) -> bool:
    """Return True if the case fails again alone, and passes without the mutation."""
    if clone.run(alone, ["-n", "0"]) is None:
        return False
    clone.write(mutation.path, original)
    fails_anyway = clone.run(alone, ["-n", "0"]) is not None
    clone.write(mutation.path, mutation.apply(original))
    if fails_anyway:
        clone.left_out.update(alone.paths)
    return not fails_anyway


def read_results(path: Path) -> dict[str, Result]:
    """Read the results of an earlier run, by key."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    results = (Result(**{**row, "left_out": tuple(row["left_out"])}) for row in rows)
    return {result.key: result for result in results}


def try_all(drawn: Sequence[Mutation], clone: Clone, options: Options, out: Path) -> None:
    """Try the mutations that have no result yet, and append the results."""
    out.parent.mkdir(parents=True, exist_ok=True)
    earlier = read_results(out)
    outcomes: Counter[str] = Counter()
    keys = [trial_key(mutation, clone.commit, options) for mutation in drawn]
    if not earlier.keys() >= {*keys}:
        clone.prepare(options)
    for number, (key, mutation) in enumerate(zip(keys, drawn, strict=True), 1):
        result = earlier.get(key)
        if result is None:
            result = try_mutation(mutation, clone, options)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result._asdict(), ensure_ascii=False) + "\n")
        outcomes[f"{result.outcome}, tier {result.tier}" if result.tier else result.outcome] += 1
        print(f"{number}/{len(drawn)} {result}", flush=True)
    for outcome, count in outcomes.most_common():
        print(f"{count} {outcome}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw mutations, and list or try them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20, help="mutations to draw")
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--list", action="store_true", help="print the mutations, run nothing")
    parser.add_argument("--match", default="", help="keep the drawn mutations of paths with this")
    parser.add_argument("--only", nargs="+", default=[], help="run these tests of the first tier")
    parser.add_argument("--jobs", type=int, default=2, help="pytest processes")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one suite")
    parser.add_argument(
        "--timeout-all", type=float, default=3600, help="seconds for the second tier"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="results, as JSON lines")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="penstock-mutants-") as folder:
        clone = Clone(Path(folder))
        drawn = [
            mutation
            for mutation in draw(clone.path, given.count, given.seed)
            if given.match in mutation.path
        ]
        if given.list:
            for mutation in drawn:
                print(f"{mutation.path}:{mutation.line} [{mutation.kind}] {mutation.diff}")
        else:
            options = Options(given.jobs, given.timeout, given.timeout_all, tuple(given.only))
            try_all(drawn, clone, options, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
