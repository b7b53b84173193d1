"""When a request is sent again, and when it is not."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from penstock.model.errors import PenstockError, QueueFull, ServerRefused
from penstock.model.store_errors import StoreFull, StoreUnavailable
from penstock.remote import wire as module
from penstock.remote.wire import Wire
from penstock.server.problems import problem, status_of

URL = "https://jobs.example.com/penstock"


class Script:
    """A server that does one thing after the other, and then what it does when all is well."""

    def __init__(self) -> None:
        self.acts: list[Exception | httpx.Response] = []
        self.asked: list[httpx.Request] = []
        self.waits: list[float] = []

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        act = self.acts.pop(0) if self.acts else httpx.Response(200, content=b"{}")
        if isinstance(act, Exception):
            raise act
        return act

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    made = Script()
    monkeypatch.setattr(module.asyncio, "sleep", made.sleep)
    monkeypatch.setattr(module.random, "uniform", lambda low, high: high)
    real = httpx.AsyncClient

    def scripted(**given: object) -> httpx.AsyncClient:
        return real(**given, transport=httpx.MockTransport(made.answer))  # type: ignore[arg-type]

    monkeypatch.setattr(module.httpx, "AsyncClient", scripted)
    return made


@pytest.fixture
async def wire(script: Script) -> AsyncIterator[Wire]:
    made = Wire(URL, "pk_1", timeout=5, patience=60, ca=None, is_local=False)
    await made.open()
    yield made
    await made.close()


def refusal(error: PenstockError, **headers: str) -> httpx.Response:
    told = problem(status_of(error), str(error), headers=headers, cause=error)
    return httpx.Response(told.status_code, headers=told.headers, content=bytes(told.body))


async def test_a_request_goes_below_the_path_the_server_is_mounted_at(
    wire: Wire, script: Script
) -> None:
    await wire.send("GET", "jobs", query=[("limit", "1"), ("status", "a"), ("status", "b")])
    [request] = script.asked
    assert str(request.url) == f"{URL}/api/jobs?limit=1&status=a&status=b"
    assert request.headers["authorization"] == "Bearer pk_1"


async def test_a_broken_connection_is_tried_again_with_growing_pauses(
    wire: Wire, script: Script
) -> None:
    script.acts = [httpx.ReadError("reset")] * 8
    assert (await wire.send("GET", "jobs")).tries == 9
    assert script.waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


async def test_the_server_says_when_to_come_back(wire: Wire, script: Script) -> None:
    script.acts = [
        httpx.Response(503, headers={"Retry-After": "7"}, content=b"busy"),
        httpx.Response(429, headers={"Retry-After": "2"}),
        httpx.Response(502),
    ]
    assert (await wire.send("GET", "jobs")).tries == 4
    assert script.waits == pytest.approx([7.1, 2.2, 0.4])


async def test_whoever_asks_for_too_long_a_wait_is_not_waited_for(
    wire: Wire, script: Script
) -> None:
    script.acts = [httpx.Response(503, headers={"Retry-After": "3600"})]
    with pytest.raises(StoreUnavailable):
        await wire.send("GET", "jobs")
    assert script.waits == []


@pytest.mark.parametrize(
    "act",
    [
        lambda: httpx.ReadError("reset"),
        lambda: httpx.ReadTimeout("late"),
        lambda: httpx.Response(503),
    ],
)
async def test_what_may_have_been_done_is_not_done_again_unless_it_is_repeatable(
    wire: Wire, script: Script, act: Callable[[], Exception | httpx.Response]
) -> None:
    script.acts = [act()]
    with pytest.raises(StoreUnavailable):
        await wire.send("POST", "jobs/1/requeue")
    script.acts = [act()]
    assert (await wire.send("POST", "jobs", b"[]", repeatable=True)).tries == 2


@pytest.mark.parametrize(
    "act", [lambda: httpx.ConnectError("refused"), lambda: httpx.Response(429)]
)
async def test_what_surely_was_not_done_is_sent_again(
    wire: Wire, script: Script, act: Callable[[], Exception | httpx.Response]
) -> None:
    script.acts = [act()]
    assert (await wire.send("POST", "jobs/1/requeue")).tries == 2


@pytest.mark.parametrize(
    "error", [QueueFull("mail", 5, 5, 3.0), StoreFull("sqlite:///a.db")], ids=["queue", "disk"]
)
async def test_an_error_with_a_meaning_of_its_own_is_for_the_caller(
    wire: Wire, script: Script, error: PenstockError
) -> None:
    script.acts = [refusal(error)]
    with pytest.raises(type(error)) as raised:
        await wire.send("GET", "jobs")
    place = {"store": URL} if isinstance(error, StoreFull) else {}
    assert vars(raised.value) == vars(error) | place
    assert len(script.asked) == 1


async def test_a_store_behind_the_server_that_comes_back_is_waited_for(
    wire: Wire, script: Script
) -> None:
    script.acts = [refusal(StoreUnavailable("postgresql://db/jobs", "it restarts"))]
    assert (await wire.send("GET", "jobs")).tries == 2


async def test_a_redirect_is_not_followed_with_the_token(wire: Wire, script: Script) -> None:
    script.acts = [httpx.Response(302, headers={"Location": "https://elsewhere.example"})]
    with pytest.raises(ServerRefused, match="answered 302"):
        await wire.send("GET", "jobs")
    assert len(script.asked) == 1


async def test_an_answer_of_something_else_is_said_to_be_one(wire: Wire, script: Script) -> None:
    script.acts = [httpx.Response(200, content=b"<html>")]
    with pytest.raises(ServerRefused, match="cannot be read"):
        await wire.ask("GET", "jobs")


async def test_opening_nests_and_the_last_close_closes(wire: Wire) -> None:
    await wire.open()
    await wire.close()
    assert (await wire.send("GET", "jobs")).body == b"{}"
