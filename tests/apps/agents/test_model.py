"""Models that write: by extraction, Anthropic's within a tenant's quota, or one's own."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.json import decode

from penstock import Penstock
from penstock.apps.agents import model
from penstock.apps.agents.maintenance.quotas import QuotaExceeded
from penstock.apps.agents.memory.records import NewMemory
from penstock.apps.agents.memory.synthesis import synthesise
from penstock.apps.agents.model import (
    Completion,
    Extractive,
    ModelAway,
    complete,
    extract,
    model_of,
)
from penstock.config import Settings
from penstock.model.errors import InvalidOption
from penstock.testing import FakeClock, drain
from tests.apps.agents.raw import rows

KEY = "".join(("not-", "a-", "key"))


class Service:
    """Answers like Anthropic's, with what a test wants."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.refuses_temperature = False
        self.headers: dict[str, str] = {}
        self.text = "Ada likes coffee."
        self.got: list[dict[str, Any]] = []

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.refuses_temperature and "temperature" in body:
            problem = {"type": "invalid_request_error", "message": "temperature: not supported"}
            return 400, {"type": "error", "error": problem}
        return self.status, {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": self.text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1_000, "output_tokens": 100},
        }


@contextmanager
def serving() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.got.append({"key": self.headers["Authorization"], **body})
            status, answer = service.answer(body)
            content = json.dumps(answer).encode()
            self.send_response(status)
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
    monkeypatch.setattr(model, "_breakers", {})


@asynccontextmanager
async def application(folder: Path, clock: FakeClock, **told: Any) -> AsyncIterator[Penstock]:
    own = {"folder": str(folder / "agents"), "schedules": False, "model": told}
    settings = Settings(extension={"agents": own})
    url = f"sqlite:///{folder}/work.db"
    async with Penstock(url, extensions=["agents"], settings=settings, clock=clock) as app:
        yield app


def anthropic(service: Service, **more: Any) -> dict[str, Any]:
    return {"provider": "anthropic", "base_url": service.url, "key": "env:MODEL_KEY", **more}


def test_an_extract_says_each_thing_once() -> None:
    said = extract(
        ["Ada likes coffee.", "Ada likes strong coffee", "ada likes strong coffee!", "Ada runs."],
        600,
    )
    assert said == "Ada likes strong coffee. Ada runs."


def test_an_extract_that_would_be_too_long_keeps_what_tells_most() -> None:
    texts = ["The red boat is in the harbour.", "Bert eats.", "The red boat left the harbour."]
    said = extract(texts, 65)
    assert "boat" in said
    assert "Bert" not in said
    assert len(extract(["word " * 500], 100)) <= 100


async def test_without_a_model_the_items_of_a_prompt_are_extracted(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with application(tmp_path, clock) as app:
        assert isinstance(model_of(app), Extractive)
        done = await complete(app, "", "Say it:\n\n1. Ada runs.\n2. Ada runs fast.\n\nPlease.")
        assert done == Completion(text="Ada runs fast.")


async def test_a_model_is_asked_with_the_seeds_figures_and_its_tenant_pays(
    tmp_path: Path, clock: FakeClock
) -> None:
    with serving() as service:
        async with application(tmp_path, clock, **anthropic(service)) as app:
            told = [
                NewMemory(content="Ada likes strong coffee in the morning.", at=1),
                NewMemory(content="Ada likes strong black coffee every morning.", at=2),
            ]
            await app.agents.memories.add_many(told, tenant="north", gate=False)
            handle = await app.agents.memories.consolidate(tenant="north")
            await drain(app)
            job = await app.get(handle.id)
            assert (job.error, decode(job.result or "")["memoriesCreated"]) == (None, 1)
            [asked] = service.got
            assert (asked["max_tokens"], asked["temperature"]) == (200, 0.3)
            assert (asked["model"], asked["key"]) == ("claude-haiku-4-5", f"Bearer {KEY}")
            assert "1. Ada likes strong coffee in the morning." in asked["messages"][0]["content"]
            made = "SELECT content, metadata FROM agents_memories WHERE memory_type = 'semantic'"
            [(content, metadata)] = rows(app, made)
            assert content == "Ada likes coffee."
            assert decode(metadata)["synthesisedBy"] == "claude-haiku-4-5"
            used = rows(app, "SELECT measure, sum(used) FROM agents_usage GROUP BY measure")
            spent = {measure: much for measure, much in used if measure in ("tokens", "money")}
            assert spent == {"tokens": 1_100, "money": pytest.approx(0.0015)}


async def test_a_model_that_takes_no_temperature_is_asked_without(
    tmp_path: Path, clock: FakeClock
) -> None:
    with serving() as service:
        service.refuses_temperature = True
        async with application(tmp_path, clock, **anthropic(service)) as app:
            assert (await complete(app, "", "Say it.")).text == "Ada likes coffee."
            assert [("temperature" in each) for each in service.got] == [True, False]


async def test_a_model_that_is_away_is_waited_for(tmp_path: Path, clock: FakeClock) -> None:
    with serving() as service:
        service.status, service.headers = 529, {"retry-after": "7"}
        async with application(tmp_path, clock, **anthropic(service)) as app:
            with pytest.raises(ModelAway) as away:
                await complete(app, "north", "Say it.")
            assert away.value.after == 7
            assert KEY not in str(away.value)
            used = rows(app, "SELECT sum(used) FROM agents_usage WHERE measure = 'tokens'")
            assert used in ([(0,)], [(None,)])
            for _ in range(6):
                with pytest.raises(ModelAway):
                    await complete(app, "north", "Say it.")
            assert len(service.got) < 7, "a model that fails is left alone for a while"


async def test_a_redirect_is_not_followed(tmp_path: Path, clock: FakeClock) -> None:
    with serving() as service, serving() as elsewhere:
        service.status, service.headers = 307, {"Location": f"{elsewhere.url}/v1/messages"}
        async with application(tmp_path, clock, **anthropic(service)) as app:
            with pytest.raises(Exception, match="307"):
                await complete(app, "", "Say it.")
            assert elsewhere.got == []


async def test_a_consolidation_waits_for_its_model(tmp_path: Path, clock: FakeClock) -> None:
    with serving() as service:
        service.status = 529
        async with application(tmp_path, clock, **anthropic(service)) as app:
            told = [NewMemory(content=f"Ada likes strong coffee {n} times.") for n in range(2, 4)]
            await app.agents.memories.add_many(told, gate=False)
            handle = await app.agents.memories.consolidate()
            await drain(app, through=1)
            job = await app.get(handle.id)
            assert (job.snoozes, job.attempts) == (1, 0)
            assert len(rows(app, "SELECT id FROM agents_memories")) == 2


async def test_beyond_the_quota_a_synthesis_is_extracted(tmp_path: Path, clock: FakeClock) -> None:
    with serving() as service:
        async with application(tmp_path, clock, **anthropic(service)) as app:
            await app.agents.quotas.set("north", "tokens", 100, period="day", action="block")
            with pytest.raises(QuotaExceeded):
                await complete(app, "north", "Say it.")
            said = await synthesise(app, "north", ["Ada runs.", "Ada runs fast."])
            assert (said.content, said.by) == ("Ada runs fast.", "extractive")
            assert service.got == []


class Loud:
    """A model of one's own."""

    name = "loud"

    def __init__(self, mark: str) -> None:
        self.mark = mark

    async def complete(self, prompt: str, *, max_tokens: int, temperature: float) -> Completion:
        return Completion(text=prompt.upper() + self.mark, input_tokens=1, output_tokens=1)


async def test_a_model_of_ones_own_takes_settings(tmp_path: Path, clock: FakeClock) -> None:
    provider = f"{__name__}:Loud"
    async with application(tmp_path, clock, provider=provider, settings={"mark": "!"}) as app:
        assert (await complete(app, "", "well")).text == "WELL!"
    async with application(tmp_path, clock, provider="oracle") as app:
        with pytest.raises(InvalidOption, match=r"model\.provider"):
            model_of(app)
