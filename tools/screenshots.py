"""Takes pictures of every page of the dashboard, in light and dark, on wide screens and phones.

`python -m tools.screenshots FOLDER` needs chromium; with `--docs` the chosen ones go to the docs.
"""

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from playwright.async_api import Browser, async_playwright

from penstock.server.app import create_server
from penstock.store.contract import JobFilter
from tools.demonstration import Demonstration, fresh

DOCS = Path(__file__).parents[1] / "docs" / "pictures"
CHOSEN = (
    "overview-light",
    "overview-dark",
    "jobs-light",
    "flow-light",
    "job-dark",
    "overview-phone",
)
LARGEST = 150_000
MODES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "wide": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True},
    "phone-dark": {
        "viewport": {"width": 390, "height": 844},
        "is_mobile": True,
        "color_scheme": "dark",
    },
}
PAGES = ("jobs", "dead", "schedules", "queues", "workers", "alerts", "audit", "access", "api")


async def take(folder: Path) -> None:
    """Build the installation, serve it, and photograph it."""
    with TemporaryDirectory() as place:
        shown = Demonstration(fresh(Path(place) / "demo.db"))
        async with shown.app:
            await shown.build()
            with socket.socket() as chosen:
                chosen.bind(("127.0.0.1", 0))
                port = chosen.getsockname()[1]
            api = create_server(shown.app, trusts_callers=True)
            server = uvicorn.Server(
                uvicorn.Config(
                    api,
                    host="127.0.0.1",
                    port=port,
                    log_level="warning",
                    timeout_graceful_shutdown=1,
                )
            )
            serving = asyncio.create_task(server.serve())
            try:
                await _photograph(f"http://localhost:{port}", await _paths(shown), folder)
            finally:
                api.state.server.streams.end()
                server.should_exit = True
                await serving


async def _paths(shown: Demonstration) -> dict[str, str]:
    """Every page by the name of its picture."""
    reader = shown.app.store.reader
    [flow] = (await reader.search(JobFilter(type="order.pack", limit=1))).jobs
    nightly = (await reader.search(JobFilter(type="report.nightly"))).jobs
    running = next(job for job in nightly if job.status == "in_progress")
    named = {"overview": "", "flow": f"jobs/{flow.id}", "job": f"jobs/{running.id}"}
    named |= {"enqueue": "jobs/new", "enqueue-form": "jobs/new?type=mail.send"}
    dead = (await shown.app.store.dead.find(limit=1))[0]
    named |= {"letter": f"dead/letters/{dead.job_id}", "schedule": "schedules/show?name=reindex"}
    return named | {page: page for page in PAGES}


async def _photograph(address: str, paths: dict[str, str], folder: Path) -> None:
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=flags
        )
        for mode, options in MODES.items():
            await _mode(browser, address, paths, folder, mode, options)
        await browser.close()


async def _mode(
    browser: Browser,
    address: str,
    paths: dict[str, str],
    folder: Path,
    mode: str,
    options: dict[str, Any],
) -> None:
    context = await browser.new_context(base_url=address, **options)
    page = await context.new_page()
    for name, path in paths.items():
        answer = await page.goto(f"/{path}")
        if answer is None or answer.status != 200:
            print(f"{path}: no page")
            continue
        await page.wait_for_timeout(300)
        await page.screenshot(path=folder / f"{name}-{mode}.png")
    await context.close()


def main() -> None:
    """Take the pictures; with `--docs` keep those that the docs show."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(folder))
    if "--docs" in sys.argv:
        for name in CHOSEN:
            made = folder / f"{name}.png"
            if made.stat().st_size > LARGEST:
                sys.exit(f"{made} has {made.stat().st_size:,} bytes; at most {LARGEST:,} are kept.")
            shutil.copyfile(made, DOCS / f"dashboard-{name}.png")


if __name__ == "__main__":
    main()
