"""Mutations: what is mutated, what is left alone, and how a trial is read."""

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tools.mutate import (
    Clone,
    Failure,
    Options,
    Result,
    Suite,
    read_failure,
    read_results,
    related_tests,
    run_within,
    try_all,
    try_mutation,
)
from tools.mutations import PACKAGES, Mutation, draw, find_in_file

OPTIONS = Options(jobs=2, timeout_s=60, timeout_all_s=60, only=())
SUITE = Suite("first tier", "test", (), 60)
SOURCE = b"def is_due(now, at):\n    return now >= at\n"


def mutants(name: str, source: str) -> list[str]:
    data = source.encode()
    return [mutation.apply(data).decode() for mutation in find_in_file(name, data)]


@pytest.mark.parametrize(
    ("source", "mutant"),
    [
        ("é = 'é', a < b", "é = 'é', a <= b"),
        ("a == b", "a != b"),
        ("(a) is not (b)", "(a) is (b)"),
        ("a not in b", "a in b"),
        ("a and b", "a or b"),
        ("a = not (b)", "a = (b)"),
        ("a = 9", "a = 10"),
        ("a + b", "a - b"),
        ("def f():\n    return a", "def f():\n    return None"),
        ("await_(\n    a,\n)", "pass"),
        ("a if b else c", "a if not (b) else c"),
    ],
)
def test_python_is_mutated(source: str, mutant: str) -> None:
    assert mutants("a.py", source) == [mutant]


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2"""',
        "a: Literal[1]",
        "def f(a: Literal[1]) -> Literal[2]: ...",
        "log.warning('a', b=c + 1)",
        "self._log.info('a', b=not c)",
        "def __repr__(self):\n    return a + b",
        "if TYPE_CHECKING:\n    a = 1",
        "f'{a + 1}'",
        "a + 'text'",
        "def f():\n    return None",
        "if __name__ == '__main__':\n    main()",
        "@limit(3)\ndef f(): ...",
    ],
)
def test_python_that_no_test_should_see_is_left_alone(source: str) -> None:
    assert mutants("a.py", source) == []


def test_sql_is_mutated_in_conditions_only() -> None:
    source = (
        "-- a < b\n"
        "UPDATE t SET a = (SELECT b FROM u WHERE u.b <> 'c = d'), e = CASE WHEN f THEN 1 END,\n"
        "    g = h -> 'i'\n"
        "WHERE {from a=b} AND j = ?\n"
        "  AND k BETWEEN 1\n"
        "  AND 2\n"
        "  AND l IS NULL;\n"
    )
    changed = [
        (mutation.line, mutation.kind, mutation.replacement)
        for mutation in find_in_file("a.sql", source.encode())
    ]
    assert changed == [
        (2, "sql comparison", "="),
        (4, "sql comparison", "<>"),
        (5, "sql line", ""),
        (7, "sql line", ";"),
    ]


def test_lua_is_mutated_outside_comments_and_strings() -> None:
    source = "-- a < b\nlocal a = b == '<' -- >\n    and c > d\n"
    assert mutants("a.lua", source) == [
        source.replace("==", "~="),
        source.replace("c >", "c >="),
        source.replace("    and c > d", ""),
    ]


def make_package(root: Path) -> None:
    for package in PACKAGES:
        folder = root / "src" / "penstock" / package
        folder.mkdir(parents=True)
        (folder / "due.py").write_bytes(SOURCE)
        (folder / "demo.py").write_bytes(SOURCE)


def test_a_draw_takes_the_packages_in_turn_and_depends_on_the_seed_alone(tmp_path: Path) -> None:
    make_package(tmp_path)
    drawn = draw(tmp_path, 4, seed=28)
    assert drawn == draw(tmp_path, 4, seed=28)
    assert [mutation.path for mutation in drawn] == [
        f"src/penstock/{package}/due.py" for package in PACKAGES[:4]
    ]
    assert len(draw(tmp_path, 100, seed=28)) == len(PACKAGES), "one line each has mutations"


def test_the_nearest_tests_of_a_file_come_first(tmp_path: Path) -> None:
    for name in ("store/redis/test_keys.py", "store/test_open.py", "apps/agents/test_chat.py"):
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def related(path: str) -> list[str]:
        return related_tests(f"src/penstock/{path}", tmp_path)

    assert related("store/redis/keys.py") == ["tests/store/redis/test_keys.py", "tests/store"]
    assert related("store/redis/lua/parts/a.lua") == ["tests/store/redis", "tests/store"]
    assert related("apps/agents/chat.py") == ["tests/apps/agents/test_chat.py", "tests/apps/agents"]
    assert related("worker/loop.py") == []


@pytest.mark.parametrize(
    ("code", "output", "failure"),
    [
        (0, "1 passed", None),
        (5, "no tests ran", None),
        (None, "", Failure("caught by timeout", "first tier, after 60 s")),
        (1, "FAILED tests/a.py::b[c - d] - x\n", Failure("caught", "tests/a.py::b[c - d]")),
        (2, "ERROR tests/a.py - ImportError\n", Failure("caught", "tests/a.py")),
        (4, "E  NameError: a\n", Failure("caught by import", "E  NameError: a")),
    ],
)
def test_the_end_of_a_run_says_why_it_failed(
    code: int | None, output: str, failure: Failure | None
) -> None:
    assert read_failure(code, output, SUITE) == failure


def test_a_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    endless = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert run_within(endless, 0.1, tmp_path, {}) == (None, "")


class FakeClone:
    """A clone whose runs fail as the test says."""

    commit = "abc"

    def __init__(self, path: Path, failing: dict[str, list[bool]]) -> None:
        self.path = path
        self.left_out: set[str] = set()
        self.prepared = 0
        self.runs: list[tuple[str, bool]] = []
        self._failing = failing

    def prepare(self, options: Options) -> None:
        self.prepared += 1

    def write(self, name: str, source: bytes) -> None:
        (self.path / name).write_bytes(source)

    def run(self, suite: Suite, arguments: list[str]) -> Failure | None:
        """Take the next outcome of the case, of which the suite has at most one."""
        name = suite.paths[0] if suite.paths else suite.name
        mutated = (self.path / "src/penstock/model/due.py").read_bytes() != SOURCE
        self.runs.append((name, mutated))
        fails = self._failing.get(name, [])
        return Failure("caught", "tests/a.py::b") if fails and fails.pop(0) else None


def trial(tmp_path: Path, failing: dict[str, list[bool]]) -> tuple[Result, FakeClone]:
    make_package(tmp_path)
    [mutation] = draw(tmp_path, 1, seed=28)
    clone = FakeClone(tmp_path, failing)
    result = try_mutation(mutation, cast("Clone", clone), OPTIONS)
    assert (tmp_path / mutation.path).read_bytes() == SOURCE, "the mutation is undone"
    return result, clone


def test_a_mutation_is_caught_by_a_case_that_fails_with_it_and_passes_without(
    tmp_path: Path,
) -> None:
    result, clone = trial(tmp_path, {"first tier": [True], "tests/a.py::b": [True, False]})
    assert (result.outcome, result.tier, result.case) == ("caught", "test", "tests/a.py::b")
    assert clone.runs == [("first tier", True), ("tests/a.py::b", True), ("tests/a.py::b", False)]


def test_a_case_that_fails_by_chance_is_left_out(tmp_path: Path) -> None:
    result, clone = trial(tmp_path, {"first tier": [True, False], "tests/a.py::b": [False]})
    assert (result.outcome, result.left_out) == ("survived", ("tests/a.py::b",))
    assert [name for name, _ in clone.runs][-1] == "second tier"
    assert clone.left_out == set()


def test_a_case_that_fails_without_the_mutation_is_left_out_for_good(tmp_path: Path) -> None:
    result, clone = trial(tmp_path, {"second tier": [True, False], "tests/a.py::b": [True, True]})
    assert result.outcome == "survived"
    assert clone.left_out == {"tests/a.py::b"}


def test_a_run_continues_after_the_results_that_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_package(tmp_path)
    drawn: list[Mutation] = draw(tmp_path, 2, seed=28)
    clone: Any = FakeClone(tmp_path, {})
    out = tmp_path / "results" / "out.jsonl"
    try_all(drawn[:1], clone, OPTIONS, out)
    before = len(clone.runs)
    try_all(drawn, clone, OPTIONS, out)
    assert len(clone.runs) == 2 * before
    assert len(read_results(out)) == 2
    try_all(drawn, clone, OPTIONS, out)
    assert clone.prepared == 2
    assert capsys.readouterr().out.endswith("2 survived\n")
