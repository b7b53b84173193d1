"""A model is asked within its budgets, and only what fits the shape is an answer."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from msgspec import Struct

from penstock import Penstock
from penstock.apps.recorder import outbound
from penstock.apps.recorder.models import Asked, Models, NotAnAnswer, Reply
from penstock.apps.recorder.outbound import Away
from penstock.events.event import Session
from tests.apps.recorder.publishing import recorder_app
from tests.support.places import find_place

KEY = "".join(("not-", "a-", "key"))
S1 = Session("", "cursor", "s1")


class Sum(Struct, forbid_unknown_fields=True):
    total: int


ASKED = Asked(instruction="Add.", text="2 and 3", shape=Sum, most_tokens=100)


class Service:
    """Answers like Anthropic's, with what a test wants."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.content: list[dict[str, Any]] = [
            {"type": "tool_use", "id": "t1", "name": "answer", "input": {"total": 5}}
        ]
        self.stop_reason = "tool_use"
        self.headers: dict[str, str] = {}
        self.got: list[dict[str, Any]] = []

    def answer(self) -> dict[str, Any]:
        return {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5",
            "content": self.content,
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1_000, "output_tokens": 100},
        }


@contextmanager
def serving() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.got.append({"path": self.path, "key": self.headers["Authorization"], **body})
            content = json.dumps(service.answer()).encode()
            self.send_response(service.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in service.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setattr(outbound, "_breakers", {})


def told(service: Service, **more: Any) -> dict[str, Any]:
    return {"provider": "anthropic", "base_url": service.url, "key": "env:MODEL_KEY", **more}


async def ask(app: Penstock, models: Models | None = None) -> Sum | None:
    return await (models or Models(app)).ask("test", S1, "c1", ASKED, Sum)


async def costs(app: Penstock) -> list[tuple[Any, ...]]:
    asked = {"since": 0, "until": 1 << 60, "tenant": None}
    return await app.read(lambda tx: list(tx.recorder.rows("own_costs", asked)))


async def test_without_a_model_nobody_is_asked() -> None:
    async with recorder_app() as app:
        assert Models(app).name is None
        assert await ask(app) is None
        assert await costs(app) == []


async def test_the_answer_is_what_the_model_fills_into_the_shape() -> None:
    with serving() as service:
        async with recorder_app(model=told(service)) as app:
            assert await ask(app) == Sum(5)
            [(purpose, model, calls, tokens_in, tokens_out, dollars)] = await costs(app)
            assert (purpose, model, calls) == ("test", "claude-haiku-4-5", 1)
            assert (tokens_in, tokens_out) == (1_000, 100)
            assert dollars == pytest.approx(0.0015)
    [asked] = service.got
    assert (asked["path"], asked["key"]) == ("/v1/messages", f"Bearer {KEY}")
    assert asked["tool_choice"] == {"type": "tool", "name": "answer"}
    assert asked["tools"][0]["input_schema"]["properties"] == {"total": {"type": "integer"}}


@pytest.mark.parametrize(
    ("content", "stop_reason"),
    [
        ([{"type": "text", "text": "I'm sorry, I cannot add."}], "end_turn"),
        ([{"type": "tool_use", "id": "t", "name": "answer", "input": {"total": "x"}}], "tool_use"),
        ([{"type": "tool_use", "id": "t", "name": "answer", "input": {"error": "no"}}], "tool_use"),
        ([{"type": "tool_use", "id": "t", "name": "answer", "input": {"total": 5}}], "max_tokens"),
    ],
)
async def test_prose_and_what_does_not_fit_are_no_answer(
    content: list[dict[str, Any]], stop_reason: str
) -> None:
    with serving() as service:
        service.content, service.stop_reason = content, stop_reason
        async with recorder_app(model=told(service)) as app:
            with pytest.raises(NotAnAnswer):
                await ask(app)
            assert (await costs(app))[0][5] > 0, "it was paid for all the same"


async def test_a_model_that_is_overloaded_is_away_for_as_long_as_it_says() -> None:
    with serving() as service:
        service.status, service.headers = 529, {"retry-after": "17"}
        async with recorder_app(model=told(service)) as app:
            with pytest.raises(Away) as away:
                await ask(app)
            assert away.value.after == 17
            assert (await costs(app))[0][3:] == (0, 0, 0.0), "nothing is left set aside"


async def test_nobody_listens_is_away() -> None:
    service = Service()
    service.url = "http://127.0.0.1:9"
    async with recorder_app(model=told(service)) as app:
        with pytest.raises(Away):
            await ask(app)


class Counting:
    """A model that tells how often it was asked."""

    model = "claude-haiku-4-5"

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, asked: Asked) -> Reply:
        self.asked += 1
        await asyncio.sleep(0)
        return Reply(value={"total": 5}, input_tokens=1_000, output_tokens=100)


@pytest.mark.parametrize(
    "budget",
    [{"daily_tokens": 5_000}, {"session_tokens": 5_000}, {"daily_dollars": 0.0075}],
)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_budgets_hold_for_calls_at_the_same_time(
    budget: dict[str, Any], kind: str, request: pytest.FixtureRequest
) -> None:
    model = Counting()
    async with recorder_app(url=find_place(kind, request).url, model=budget) as app:
        models = Models(app, model)
        answers = await asyncio.gather(*(ask(app, models) for _ in range(20)))
        assert 1 <= model.asked <= 5
        assert answers.count(None) == 20 - model.asked
        for _ in range(10):
            await ask(app, models)
        [(*_, tokens_in, tokens_out, dollars)] = await costs(app)
        assert tokens_in + tokens_out <= 5_500
        assert dollars <= 0.0076
