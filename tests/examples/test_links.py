"""The example of an extension, whole: on SQLite and on PostgreSQL, through every door it has."""

import ast
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from examples import links
from examples.links import add, extension, look_again, states
from penstock import Penstock, Settings, Worker
from penstock.alerts.judge import judge_all
from penstock.server.app import create_server
from penstock.testing import FakeClock
from tests.cli.conftest import Cli, cli
from tests.support.places import Place

__all__ = ["cli"]
HOME = Path(links.__file__).parent
BROKEN = "http://127.0.0.1:1/"


@pytest.fixture(params=["sqlite", "postgres"])
def kind_of_store(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
async def app(place: Place, clock: FakeClock) -> AsyncIterator[Penstock]:
    settings = Settings(**place.settings, requests_per_minute=0)
    async with Penstock(settings=settings, extensions=[extension], clock=clock) as opened:
        yield opened


@pytest.fixture
async def http(app: Penstock) -> AsyncIterator[httpx.AsyncClient]:
    server = create_server(app, trusts_callers=True)
    transport = httpx.ASGITransport(server)
    async with (
        server.router.lifespan_context(server),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


@pytest.fixture
def answering() -> AsyncIterator[str]:  # type: ignore[misc]
    class Fine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Fine)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


async def work_off(app: Penstock) -> None:
    await Worker(app, burst=True, upkeep=False).run()


def test_it_has_at_most_250_lines_and_imports_public_names_only() -> None:
    files = [file for file in HOME.rglob("*") if file.suffix in {".py", ".sql", ".html"}]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 250
    imported = {
        node.module
        for file in HOME.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock")
    }
    assert imported == {"penstock", "penstock.extension"}


async def test_links_are_looked_at(app: Penstock, answering: str) -> None:
    await add(app, answering, "ada")
    await add(app, BROKEN, "ada")
    assert await states(app) == {"new": 2}
    await work_off(app)
    assert await states(app) == {"ok": 1, "broken": 1}


async def test_links_that_nobody_looked_at_for_long_are_looked_at_again(
    app: Penstock, clock: FakeClock
) -> None:
    await add(app, BROKEN)
    await work_off(app)
    await look_again(app)
    assert len(await app.find(type="links.check", status="queued")) == 0
    clock.advance(seconds=3_601)
    await look_again(app)
    await look_again(app)
    assert len(await app.find(type="links.check", status="queued")) == 1


async def test_every_link_is_looked_at_at_night(app: Penstock, clock: FakeClock) -> None:
    await add(app, BROKEN)
    await work_off(app)
    clock.advance(1)
    handle = await app.find_type("links.sweep").enqueue()
    await work_off(app)
    assert await handle.result() == 1


async def test_it_is_served(app: Penstock, http: httpx.AsyncClient) -> None:
    made = await http.post("/api/links", json={"url": BROKEN, "owner": "ada"})
    assert (made.status_code, made.json()["state"]) == (201, "new")
    assert [each["url"] for each in (await http.get("/api/links")).json()] == [BROKEN]
    refused = await http.post("/api/links", json={"link": BROKEN})
    assert refused.status_code == 422
    await work_off(app)
    page = (await http.get("/links")).text
    assert BROKEN in page
    assert "broken" in page
    assert 'penstock_links_watched{state="broken"} 1' in (await http.get("/metrics")).text.replace(
        ".0", ""
    )
    assert "Links" in (await http.get("/")).text


async def test_somebody_hears_of_broken_links(app: Penstock) -> None:
    app.extensions.enable_installed()
    await add(app, BROKEN)
    await work_off(app)
    firing = {alert.name for alert in await judge_all(app) if alert.stands}
    assert "links_broken" in firing


def test_its_commands_watch_and_list_links(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "examples.links:extension")
    assert "is watched" in cli("links", "add", BROKEN).out
    [found] = cli("links", "ls", "--json").json
    assert (found["url"], found["state"]) == (BROKEN, "new")
