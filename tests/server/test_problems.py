"""What callers are told of errors: enough to act on, and nothing of how the server is built."""

from collections import defaultdict
from collections.abc import Callable

import pytest
import structlog
from fastapi import FastAPI
from httpx import AsyncClient

from penstock import Penstock
from penstock.model.errors import MissingExtra, PenstockError, known_errors
from penstock.model.store_errors import StoreFull, StoreUnavailable
from penstock.model.transfer import StoreMoved
from penstock.server import problems
from penstock.server.problems import STATUSES, STORE_AWAY, STORE_FULL
from penstock.service import Seldom
from tests.server.api.operations import operations
from tests.server.dashboard.furnish import page_routes

PLACE = "db.internal"
URL = f"postgresql://jobs@{PLACE}/work"
ERRORS: list[tuple[PenstockError, str]] = [
    (StoreUnavailable(URL, f"{PLACE} refused"), STORE_AWAY),
    (StoreMoved(URL, f"postgresql://new.{PLACE}/work"), STORE_AWAY),
    (StoreFull(URL), STORE_FULL),
]


MISTAKES = {
    "NotIncluded",
    "PenstockError",
    "CorruptPayload",
    "InvalidResult",
    "JobCancelled",
    "JobFailed",
    "MissingExtra",
    "NoSuchMove",
    "ResultNotSerializable",
    "ResultTimeout",
    "SameStore",
    "ServerRefused",
}
"""What no request can cause; whoever adds an error decides whether it belongs here."""


def test_every_error_is_answered_on_purpose() -> None:
    unknown = [k for k in known_errors().values() if not issubclass(k, tuple(STATUSES))]
    assert {kind.__name__ for kind in unknown} == MISTAKES


async def test_an_error_that_no_caller_caused_is_the_servers(
    app: Penstock, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise MissingExtra("server", "apprise")

    monkeypatch.setattr(app.store.reader, "search", fail)
    for path in ("/api/jobs", "/jobs"):
        with structlog.testing.capture_logs() as lines:
            answer = await http.get(path)
        assert (answer.status_code, "apprise" in answer.text) == (500, False)
        assert "request_failed" in [line["event"] for line in lines]


async def test_a_queue_that_is_full_says_when_to_come_back(
    app: Penstock, http: AsyncClient
) -> None:
    await app.controls.set_limit(queue="default", depth=1)
    for n in range(2):
        answer = await http.post("/api/jobs", json={"type": "add", "payload": {"a": n}})
    assert (answer.status_code, answer.json()["type"]) == (429, "urn:penstock:problem:queue-full")
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.fixture
def lose(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> Callable[[PenstockError], None]:
    """Has the store fail at the first question that every route asks."""

    def failing(error: PenstockError) -> None:
        async def fail(*_: object, **__: object) -> None:
            raise error

        for name in ("get", "list"):
            monkeypatch.setattr(app.store.records, name, fail)

    return failing


async def test_no_operation_tells_where_a_lost_store_is(
    lose: Callable[[PenstockError], None],
    http: AsyncClient,
    server: FastAPI,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [operation for operation in operations(server) if operation.scopes]
    for error, sentence in ERRORS:
        lose(error)
        monkeypatch.setattr(problems, "_may_warn", defaultdict(Seldom))
        with structlog.testing.capture_logs() as lines:
            for operation in known:
                answer = await http.send(operation.request(http))
                assert (answer.status_code, answer.json()["detail"]) == (503, sentence)
                assert PLACE not in answer.text, operation.id
        assert len([line for line in lines if PLACE in line.get("error", "")]) == 1


async def test_no_page_tells_where_a_lost_store_is(
    lose: Callable[[PenstockError], None], http: AsyncClient
) -> None:
    lose(ERRORS[0][0])
    for path in page_routes("GET"):
        answer = await http.get(path.replace("{name:path}", "x").replace("{", "").replace("}", ""))
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1"), path
        assert PLACE not in answer.text, path
    answer = await http.post("/jobs/bulk", data={"action": "cancel"})
    assert (answer.status_code, PLACE in answer.text) == (503, False)


async def test_answers_of_the_api_are_kept_by_nobody(http: AsyncClient) -> None:
    for path in ("/api/jobs", "/api/jobs/nothing", "/api/nothing", "/api/health"):
        answer = await http.get(path)
        assert answer.headers.get_list("cache-control") == ["no-store"], path
        assert answer.headers["x-content-type-options"] == "nosniff"
