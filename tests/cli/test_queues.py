from pathlib import Path
from typing import Any

from penstock.store.contract import Store
from tests.support.workers import beat

from .conftest import Cli
from .test_top import asked


def live(folder: Path, **changes: Any) -> None:
    """Let a worker say that it lives."""

    async def say(store: Store) -> None:
        store.workers.beat(beat(**changes))

    asked(folder, say)


def test_queues_are_listed_with_what_holds_them_back(cli: Cli, tmp_path: Path) -> None:
    cli("enqueue", "greet", "--queue", "mail")
    cli("pause", "queue", "held", "--reason", "deploy", "--by", "ann")
    cli("limits", "set", "queue", "small", "--depth", "5")

    live(tmp_path, declared_queues=("images",))
    rows = {row["queue"]: row for row in cli("queues", "ls", "--json").json}
    assert list(rows) == ["held", "images", "mail", "small"]
    assert (rows["mail"]["queued"], rows["mail"]["workers"]) == (1, 1)
    assert rows["held"]["pause"]["reason"] == "deploy"
    assert rows["small"]["limits"][0]["capacity"] == 5
    out = cli("queues", "ls").out
    for words in ("images", "paused now by ann: deploy", "takes at most 5 jobs"):
        assert words in out
    assert [row["queue"] for row in cli("queues", "ls", "--tenant", "x", "--json").json] == []


def test_an_idle_queue_is_in_top(cli: Cli, tmp_path: Path) -> None:
    cli("enqueue", "greet", "--queue", "mail")

    live(tmp_path, declared_queues=("images",))
    found = cli("top", "--once", "--json").json["queues"]
    assert [row["queue"] for row in found] == ["images", "mail"]


def test_a_store_without_queues_says_so(cli: Cli) -> None:
    cli("migrate")
    answer = cli("queues", "ls")
    assert (answer.code, "No queues yet" in answer.out) == (0, True)
