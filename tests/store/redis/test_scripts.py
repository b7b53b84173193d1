"""The scripts of the Redis store, as files and as the servers take them."""

import re
from collections import Counter
from importlib.resources import files

import pytest
import redis

from penstock.model.job import DEFAULT_PRIORITY, PRIORITY_STEP_MS
from penstock.store.redis.scripts import script
from tests.support.lua_keys import header_of, keys_of, layout

LUA = files("penstock.store.redis").joinpath("lua")
TEXTS = {
    (folder.name, file.name.removesuffix(".lua")): file.read_text("utf-8")
    for folder in LUA.iterdir()
    for file in folder.iterdir()
}
NAMES = sorted(name for _, name in TEXTS)
ALL = "\n".join(TEXTS.values())
NEEDED = re.compile(r"^-- (?:needs: ([\w ]+)$|later: (\w+) gives)", re.MULTILINE)
KEYS_NAMED = re.compile(r"^-- (?:reads|writes): .*\n(?:--   \S.*\n)*", re.MULTILINE)
FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
WORD = re.compile(r"\w+")


@pytest.mark.parametrize("server", ["valkey", "redis6"])
def test_every_script_is_one_that_the_server_can_compile(
    server: str, request: pytest.FixtureRequest
) -> None:
    client = redis.Redis.from_url(request.getfixturevalue(f"{server}_server_url"))
    for name in NAMES:
        sha = client.script_load(script(name).source)
        assert sha == script(name).sha
    client.close()


@pytest.mark.parametrize("file", sorted(TEXTS))
def test_every_file_begins_by_saying_what_it_is_for(file: tuple[str, str]) -> None:
    first = TEXTS[file].partition("\n")[0]
    assert first.startswith("-- ")
    assert first.endswith((".", ":", ",")) or len(first) > 40


def test_scripts_are_called_and_parts_are_needed_by_others() -> None:
    package = files("penstock.store.redis")
    python = [file.read_text("utf-8") for file in package.iterdir() if file.name.endswith(".py")]
    called = {name for name in NAMES if any(f'"{name}"' in text for text in python)}
    needed = {part for named in NEEDED.findall(ALL) for part in " ".join(named).split()}
    scripts, parts = ({n for f, n in TEXTS if f == folder} for folder in ("scripts", "parts"))
    assert sorted(scripts - called) == []
    assert parts == needed


def test_every_function_is_used() -> None:
    words = Counter(WORD.findall(ALL))
    assert [name for name in FUNCTION.findall(ALL) if words[name] == 1] == []


def test_guards_are_made_from_the_table_of_states() -> None:
    assert "{from " not in script("claim").source
    assert "local MAY_CLAIM = {queued = true}" in script("claim").source


def test_a_part_that_two_others_need_is_there_once() -> None:
    assert script("settle").source.count("local PREFIX = KEYS[1]") == 1


def test_the_order_of_jobs_is_the_one_of_the_model() -> None:
    source = script("claim").source
    assert f"local PRIORITY_STEP_MS = {PRIORITY_STEP_MS}\n" in source
    assert f"local DEFAULT_PRIORITY = {DEFAULT_PRIORITY}\n" in source


@pytest.mark.parametrize("name", sorted(name for folder, name in TEXTS if folder == "scripts"))
def test_the_header_of_a_script_names_the_keys_that_it_reads_and_writes(name: str) -> None:
    header = "".join(KEYS_NAMED.findall(TEXTS["scripts", name]))
    assert header == header_of(name)


def test_every_key_that_a_script_touches_is_in_the_layout() -> None:
    scripts = [name for folder, name in TEXTS if folder == "scripts"]
    touched = set[str]().union(*(keys for name in scripts for keys in keys_of(name)))
    assert touched - layout() == {"ARGV", "*"}
