"""A real browser at a real server; without chromium these tests, alone, are skipped."""

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from penstock import Context, Penstock
from penstock.config import Settings
from penstock.model.outcome import Dead
from penstock.server.access.identity import Scope
from penstock.server.app import create_server
from penstock.worker.worker import Worker
from tests.apps.recorder.sessions import RECORDER
from tests.support.places import LONG

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PASSWORD = "a long password"
WIDTHS = (1280, 820, 390)
SCHEMES = ("light", "dark")
# A frame calls its resize listeners before its animation callbacks.
RESIZED = """(width) => new Promise((done) => {
  const wait = () => requestAnimationFrame(innerWidth === width ? done : wait);
  wait();
})"""


class Site:
    """A server, a worker beside it, and the user who may log in."""

    def __init__(self, app: Penstock, api: FastAPI, port: int) -> None:
        self.app = app
        self.api = api
        self.address = f"http://localhost:{port}"
        self.loop = asyncio.new_event_loop()
        self.go_on, self.stop = asyncio.Event(), asyncio.Event()

    def do(self, coroutine: Any) -> Any:
        """Run something where the server runs."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)


# Not for the whole session: while it runs, no other test of this process could start a loop.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser of these tests."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    # A sandbox needs a user of its own, which root in a container has not.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that judges whether everybody can use a page."""
    package = pytest.importorskip("axe_playwright_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")


def show(page: Any, width: int, scheme: str) -> None:
    """Resize the page and wait for the frame in which its scripts have handled the new width."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.evaluate(RESIZED, width)


def looks(page: Any, nth: int) -> Iterator[tuple[int, bool]]:
    """Show the nth page at every width, in light and dark by turns; should axe judge it there?

    In the short form it judges each page at one width, by turns too.
    """
    for number, width in enumerate(WIDTHS):
        show(page, width, SCHEMES[(nth // len(WIDTHS) + number) % len(SCHEMES)])
        yield width, LONG or number == nth % len(WIDTHS)


def with_one_call(page: Any, site: "Site") -> None:
    """Have the page of the API describe one call: to draw all of them takes seconds."""
    document = site.api.openapi()
    call = document["paths"]["/api/jobs"]["post"] | {"responses": {"201": {"description": "made"}}}
    one = document | {"paths": {"/api/jobs": {"post": call}}}
    page.route("**/api/openapi.json", lambda route: route.fulfill(json=one))


@pytest.fixture
def page(chromium: Any, site: Site) -> Iterator[Any]:
    """An empty tab; whatever the browser complains of fails the test."""
    from playwright.sync_api import expect

    context = chromium.new_context(base_url=site.address)
    tab = context.new_page()
    complaints: list[str] = []
    tab.on(
        "console", lambda said: said.type in ("error", "warning") and complaints.append(said.text)
    )
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    tab.set_default_timeout(30_000)
    expect.set_options(timeout=30_000)
    yield tab
    context.close()
    assert [each for each in complaints if "status of 4" not in each] == []


@pytest.fixture
def extended() -> dict[str, dict[str, Any]]:
    """The extensions of the application, and their settings."""
    return {"events": {}, RECORDER: {}}


@pytest.fixture
def site(tmp_path: Path, extended: dict[str, dict[str, Any]]) -> Iterator[Site]:
    """A server in a thread of its own, trusting this machine until there are users."""
    settings = Settings(
        url=f"sqlite:///{tmp_path}/work.db",
        lease=10,
        renew_interval=0.5,
        cancel_grace=0.2,
        extension={name: told for name, told in extended.items() if told},
    )
    app = Penstock(settings=settings, extensions=[*extended])
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    made = Site(app, create_server(app, trusts_callers=True), port)
    _register(made)
    thread = threading.Thread(target=made.loop.run_until_complete, args=[_serve(made, port)])
    thread.start()
    try:
        made.do(_answering(port))
        yield made
    finally:
        made.loop.call_soon_threadsafe(made.go_on.set)
        made.loop.call_soon_threadsafe(made.stop.set)
        thread.join(30)
        made.loop.close()


@pytest.fixture
def user(site: Site) -> str:
    """Somebody who may do everything."""
    users = site.api.state.server.users
    site.do(users.create("ana", PASSWORD, (Scope.ADMIN,), by="test"))
    return "ana"


def _register(site: Site) -> None:
    app = site.app

    @app.job(name="import", queue="data", timeout=60)
    async def import_rows(ctx: Context, file: str) -> int:
        """Import the rows of a file."""
        ctx.log(f"opened {file}")
        ctx.progress(40, "row 40 of 100")
        await site.go_on.wait()
        return 100

    @app.job(name="charge", queue="billing")
    async def charge(order: str) -> None:
        """Charge an order."""
        raise Dead(f"order {order} has no customer")


async def _serve(site: Site, port: int) -> None:
    asyncio.set_event_loop(site.loop)
    config = uvicorn.Config(
        site.api, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    worker = Worker(site.app, concurrency=4)
    async with site.app:
        running = [asyncio.create_task(server.serve()), asyncio.create_task(worker.run())]
        await site.stop.wait()
        worker.stop()
        site.api.state.server.streams.end()
        server.should_exit = True
        await asyncio.gather(*running)


async def _answering(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise TimeoutError("the server did not start")
