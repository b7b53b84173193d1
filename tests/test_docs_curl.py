"""The `curl` examples of the docs, run against a real server with a worker behind it."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI

from penstock import Penstock, Worker
from penstock.server.access.identity import Scope
from penstock.server.access.tokens import Tokens
from penstock.server.app import create_server
from tests.support.http_server import serving
from tests.test_docs import ROOT, examples, run

pytestmark = pytest.mark.thorough
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
END = "---end of the example---"
PREAMBLE = """
set -euo pipefail
curl() { command curl --silent --show-error --fail-with-body "$@"; }
jq() { "$PYTHON" "$JQ" "$2"; }
"""


def pages_with_curl() -> list[str]:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [str(p.relative_to(ROOT)) for p in pages if "```bash {.run}" in p.read_text("utf-8")]


def curl_examples(page: Path) -> list[tuple[str, Any]]:
    """Each example, and the answer that the page shows of it, if it does."""
    found: list[tuple[str, Any]] = []
    for block in BLOCK.finditer(page.read_text("utf-8")):
        if block["info"] == "bash {.run}":
            found.append((block["code"], None))
        elif block["info"] == "json" and found:
            found[-1] = found[-1][0], json.loads(block["code"])
    return found


@asynccontextmanager
async def with_a_worker(app: Penstock, server: FastAPI) -> AsyncIterator[None]:
    async with server.router.lifespan_context(server):
        worker = Worker(app)
        running = asyncio.create_task(worker.run())
        await worker.started()
        yield
        worker.stop()
        await running


async def admin_token(app: Penstock) -> str:
    async with app:
        return (await Tokens(app.store).create("docs", (Scope.ADMIN,), by="test"))[1]


def answers(script: str, address: str, token: str) -> list[str]:
    """What each example prints."""
    found = subprocess.run(
        ["bash", "-c", script],
        env=os.environ
        | {
            "PENSTOCK": address,
            "TOKEN": token,
            "PYTHON": sys.executable,
            "JQ": str(Path(__file__).parent / "support" / "jq.py"),
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr
    return found.stdout.split(END)


def is_part_of(shown: Any, found: Any) -> bool:
    """Whether a page shows an answer as it is, or a part of it; texts may differ."""
    if isinstance(shown, dict):
        return all(name in found and is_part_of(shown[name], found[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(found, list) and all(map(is_part_of, shown, found))
    if isinstance(shown, int):
        return bool(shown == found)
    return shown is None or found is None or type(shown) is type(found)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
@pytest.mark.parametrize("name", pages_with_curl())
def test_the_curl_examples_of_a_page_run_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    asyncio.run(run(examples(ROOT / name), vars(module)))
    app: Penstock = vars(module)["app"]
    token = asyncio.run(admin_token(app))
    found = curl_examples(ROOT / name)
    script = PREAMBLE + f"echo '{END}'\n".join(code for code, _ in found)
    server = create_server(app)
    outer = FastAPI(lifespan=lambda _: with_a_worker(app, server))
    outer.mount("/", server)
    with serving(outer) as address:
        printed = answers(script, address, token)
    assert len(printed) == len(found)
    for (code, shown), text in zip(found, printed, strict=True):
        if shown is not None:
            assert is_part_of(shown, json.loads(text)), f"{code}\n{text}"


def test_an_answer_that_differs_from_the_page_is_noticed() -> None:
    assert is_part_of({"a": [{"b": "x"}]}, {"a": [{"b": "y", "c": 3}], "d": None})
    assert not is_part_of({"a": 1}, {"b": 1})
    assert not is_part_of({"a": 1}, {"a": 2})
    assert not is_part_of({"a": [1]}, {"a": "1"})


def test_an_example_that_is_refused_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        answers(PREAMBLE + 'curl "$PENSTOCK/api/jobs"', "http://localhost:9", "")
