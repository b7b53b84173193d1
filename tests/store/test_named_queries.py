"""The named queries of the dialects: what is asked for is there, and what is there is asked for."""

import re
from collections import Counter
from importlib.resources import files

import pytest

from penstock.model.states import TRANSITIONS
from penstock.store.relational.transaction import load_queries

DIALECTS = ["sqlite", "postgres"]
# Names that are put together where they are asked for.
MADE = {f"delete_{table}" for table in ("jobs", "executions", "logs", "dead_letters", "edges")}
# The name that tables.py and transfer.py give to a statement they write themselves.
WRITTEN_THERE = "one"
# What changes a state, and where a statement or a function says in its own words from which.
UNIT = re.compile(r"^(?:-- (?:name|part): |CREATE OR REPLACE FUNCTION )", re.MULTILINE)
CHANGES = re.compile(r"\bSET (?:live = \w+, )?status = '(\w+)'")
GUARDED = re.compile(r"\{from (\w+)\}")
WRITTEN_OUT = re.compile(r"\bstatus\b(?: \|\| '')? (?:=|<>|IN|NOT IN) \(?'\w+'")
NAMED = re.compile(r"^-- name: (\w+)", re.MULTILINE)
ASKED = re.compile(r'\b(?:run|rows?|value|many|fenced)\(\s*"(\w+)"')


def sources(*packages: str) -> str:
    """All Python of some packages of the store."""
    found = []
    for package in packages:
        for file in files(f"penstock.store.{package}").iterdir():
            if file.name.endswith(".py"):
                found.append(file.read_text("utf-8"))
            elif file.joinpath("__init__.py").is_file():
                found.append(sources(f"{package}.{file.name}"))
    return "\n".join(found)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_asked_for(dialect: str) -> None:
    asked = sources("relational", dialect)
    names = {name.removesuffix("_all") for name in load_queries(f"penstock.store.{dialect}")}
    assert [name for name in names if name not in MADE and f'"{name}"' not in asked] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_what_they_share(dialect: str) -> None:
    asked = {*ASKED.findall(sources("relational")), *MADE} - {WRITTEN_THERE}
    assert sorted(asked - load_queries(f"penstock.store.{dialect}").keys()) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_name_is_given_twice(dialect: str) -> None:
    folder = files(f"penstock.store.{dialect}").joinpath("sql")
    texts = [file.read_text("utf-8") for file in folder.iterdir()]
    names = Counter(name for text in texts for name in NAMED.findall(text))
    assert [name for name, count in names.items() if count > 1] == []


def changing(dialect: str) -> list[str]:
    """Every statement and function of a dialect that gives jobs another state."""
    package = files(f"penstock.store.{dialect}")
    folders = [package.joinpath(name) for name in ("sql", "functions")]
    texts = [
        file.read_text("utf-8")
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
    ]
    return [unit for text in texts for unit in UNIT.split(text)[1:] if CHANGES.search(unit)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_change_of_state_is_guarded_by_a_list_written_by_hand(dialect: str) -> None:
    units = changing(dialect)
    assert len(units) > 10
    assert [unit for unit in units if WRITTEN_OUT.search(CHANGES.sub("", unit))] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_change_of_state_is_guarded_by_an_action_that_leads_there(dialect: str) -> None:
    targets = {step.action: step.target for step in TRANSITIONS}
    strays = [
        unit
        for unit in changing(dialect)
        # What a claim leases it has locked itself, by functions that have the guard.
        if not unit.startswith("{schema}.lease(")
        and not {*CHANGES.findall(unit)} <= {targets[action] for action in GUARDED.findall(unit)}
    ]
    assert strays == []
