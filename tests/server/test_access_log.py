"""Request ids, and the lines that a server logs about requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from fastapi import FastAPI
from httpx import AsyncClient
from structlog.testing import LogCapture

from penstock import Penstock
from penstock.config import Settings
from penstock.model.ids import is_id
from penstock.server.app import create_server
from penstock.server.requests import HEADER


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    """What is logged meanwhile."""
    before = structlog.get_config()
    capture = LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, capture])
    yield capture.entries
    structlog.configure(**before)


def asking(server: FastAPI) -> AsyncClient:
    transport = httpx.ASGITransport(server, raise_app_exceptions=False)
    return AsyncClient(transport=transport, base_url="http://localhost")


async def test_every_answer_has_an_id(http: AsyncClient) -> None:
    first, second = [(await http.get("/healthz")).headers[HEADER] for _ in range(2)]
    assert is_id(first)
    assert first != second
    assert is_id((await http.get("/nothing")).headers[HEADER])


@pytest.mark.parametrize(
    ("sent", "kept"), [("abc-7.x_Y", True), ("a b", False), ("x" * 129, False), ("\x1b[2J", False)]
)
async def test_a_callers_own_id_is_kept_if_a_log_can_hold_it(
    http: AsyncClient, sent: str, kept: bool
) -> None:
    answer = await http.get("/healthz", headers={HEADER: sent})
    assert (answer.headers[HEADER] == sent) is kept


async def test_a_request_is_told_with_who_asked_and_without_its_query(
    tmp_path: Path, lines: list[Any]
) -> None:
    chosen = Settings(url=f"sqlite:///{tmp_path}/jobs.db", access_log=True)
    server = create_server(Penstock(settings=chosen), trusts_callers=True)
    async with server.router.lifespan_context(server), asking(server) as http:
        answer = await http.get("/api/jobs?text=canary-7f3a", headers={HEADER: "mine"})
        assert answer.status_code == 200
        await http.get("/%1b[2J")
    first, second = [line for line in lines if line["event"] == "http_request"]
    assert first.pop("duration_ms") >= 0
    assert first == {
        "event": "http_request",
        "log_level": "info",
        "request_id": "mine",
        "method": "GET",
        "path": "/api/jobs",
        "status": 200,
        "caller": "local",
    }
    assert (second["path"], second["status"], second["caller"]) == ("/%1b[2J", 404, None)
    assert not any("canary" in str(line) for line in lines)


async def test_a_mistake_of_the_server_is_found_by_the_id_of_its_answer(
    server: FastAPI, lines: list[Any]
) -> None:
    async def broken() -> None:
        raise RuntimeError("unforeseen")

    server.add_api_route("/broken", broken)
    async with asking(server) as http:
        answer = await http.get("/broken", headers={HEADER: "mine"})
    assert (answer.status_code, answer.headers[HEADER]) == (500, "mine")
    assert answer.json()["detail"].endswith("under mine.")
    assert "unforeseen" not in answer.text
    [line] = [line for line in lines if line["event"] == "request_failed"]
    assert (line["request_id"], str(line["exc_info"])) == ("mine", "unforeseen")
