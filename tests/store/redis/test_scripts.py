"""The scripts of the Redis store on the servers; `tools/check_scripts.py` checks the files."""

from importlib.resources import files

import pytest
import redis

from penstock.model.job import DEFAULT_PRIORITY, PRIORITY_STEP_MS
from penstock.store.redis.scripts import script

LUA = files("penstock.store.redis").joinpath("lua")
NAMES = sorted(
    file.name.removesuffix(".lua") for folder in LUA.iterdir() for file in folder.iterdir()
)


@pytest.mark.parametrize("server", ["valkey", "redis6"])
def test_every_script_is_one_that_the_server_can_compile(
    server: str, request: pytest.FixtureRequest
) -> None:
    client = redis.Redis.from_url(request.getfixturevalue(f"{server}_server_url"))
    for name in NAMES:
        sha = client.script_load(script(name).source)
        assert sha == script(name).sha
    client.close()


def test_guards_are_made_from_the_table_of_states() -> None:
    assert "{from " not in script("claim").source
    assert "local MAY_CLAIM = {queued = true}" in script("claim").source


def test_a_part_that_two_others_need_is_there_once() -> None:
    assert script("settle").source.count("local PREFIX = KEYS[1]") == 1


def test_the_order_of_jobs_is_the_one_of_the_model() -> None:
    source = script("claim").source
    assert f"local PRIORITY_STEP_MS = {PRIORITY_STEP_MS}\n" in source
    assert f"local DEFAULT_PRIORITY = {DEFAULT_PRIORITY}\n" in source
