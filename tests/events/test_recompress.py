"""Recompression: every body in the best codec, unless another was chosen or it was erased."""

from typing import Any

import pytest
from msgspec.structs import replace

from penstock import Penstock, Settings
from penstock.events import recompress as module
from penstock.events.recompress import recompress
from tests.support.places import Place

EVERYTHING = {"after": 0, "tenant": None, "event_type": None, "platform": None, "limit": 100}


def told(place: Place, codec: str | None) -> Settings:
    tables = "sqlite:///:memory:" if place.kind == "valkey" else None
    chosen = {} if codec is None else {"codec": codec}
    return Settings(**place.settings, tables=tables, extension={"events": chosen})


async def codecs(app: Penstock) -> list[str]:
    rows = await app.read(lambda tx: tx.events.queries.rows("every", EVERYTHING))
    return [row[11] for row in rows]


def choose(app: Penstock, codec: str | None) -> None:
    """Have an application go on as if its settings had said so."""
    settings = app.extensions.settings("events")
    app.extensions._settings["events"] = replace(settings, codec=codec)
    app.events._preparer = None


@pytest.mark.every_store
@pytest.mark.parametrize("codec", ["raw", "zlib"])
async def test_what_is_not_compressed_well_is_compressed_better(place: Place, codec: str) -> None:
    async with Penstock(settings=told(place, codec)) as app:
        for n in range(3):
            await app.events.append("trace", platform="cursor", payload={"n": n, "text": "a" * 300})
        before = await app.events.find()
        assert await codecs(app) == [codec] * 3
        choose(app, None)
        assert await recompress(app) == 3
        assert await codecs(app) == ["zstd"] * 3
        assert await app.events.find() == before
        assert await recompress(app) == 0


async def test_who_chose_zlib_keeps_it_and_what_is_raw_becomes_it(place: Place) -> None:
    async with Penstock(settings=told(place, "zlib")) as app:
        await app.events.append("trace", payload={"text": "a" * 300})
        choose(app, "raw")
        await app.events.append("trace", payload={"text": "b" * 300})
        assert await codecs(app) == ["zlib", "raw"]
        choose(app, "zlib")
        assert await recompress(app) == 1
        assert await codecs(app) == ["zlib", "zlib"]


async def test_an_event_that_is_erased_meanwhile_stays_erased(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Penstock(settings=told(place, "raw")) as app:
        await app.events.append("trace", event_id="e", timestamp=1, payload={"text": "a" * 300})
        replace_rows = module._replace

        async def late(app: Penstock, target: Any, rows: Any) -> int:
            [(sequence, at, *_)] = rows
            erased = ("erased", b"", sequence, at, "raw")
            await app.transact(lambda tx: tx.events.queries.run("recompress", erased))
            return await replace_rows(app, target, rows)

        monkeypatch.setattr(module, "_replace", late)
        assert await recompress(app) == 0
        _, codec, *_ = await app.read(lambda tx: tx.events.queries.row("known", ("e", 1, "")))
        assert codec == "erased"


async def test_a_damaged_body_stays_and_keeps_no_other_from_being_compressed(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Penstock(settings=told(place, "zlib")) as app:
        for n in range(3):
            await app.events.append("trace", event_id=f"e{n}", timestamp=n, payload={"n": n})
        damaged = ("zlib", b"no zlib", 2, 1, "zlib")
        await app.transact(lambda tx: tx.events.queries.run("recompress", damaged))
        choose(app, None)
        assert await recompress(app) == 2
        assert await codecs(app) == ["zstd", "zlib", "zstd"]
        rows = await app.read(lambda tx: tx.events.queries.rows("every", EVERYTHING))
        assert bytes(rows[1][12]) == b"no zlib"
    assert "events_not_recompressed" in capsys.readouterr().out


async def test_what_would_come_out_otherwise_is_not_replaced(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Penstock(settings=told(place, "raw")) as app:
        await app.events.append("trace", payload={"text": "a" * 300})
        before = await app.events.find()
        pack = module.packed
        monkeypatch.setattr(module, "packed", lambda body, *more: pack(body[:-1], *more))
        assert await recompress(app) == 0
        assert await app.events.find() == before
