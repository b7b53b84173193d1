"""Telemetry of Claude Code is taken over OTLP, in JSON and protobuf, under a scope of its own."""

import gzip
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.apps.recorder import conversations, otlp
from penstock.apps.recorder.captured import Captured, Message
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.routes import OTLP_LIMIT
from penstock.apps.recorder.writing import write
from penstock.config import Settings
from penstock.events import EventFilter, catch_up
from penstock.model.errors import InvalidOption
from penstock.server.app import create_server
from tests.server.conftest import TokenMaker, http, make_token  # noqa: F401

Http = httpx.AsyncClient
NOON = 1_767_268_800_000
LOGS, METRICS = "/api/otlp/v1/logs", "/api/otlp/v1/metrics"
PROTOBUF = {"Content-Type": otlp.PROTOBUF}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Penstock]:
    settings = Settings(url=f"sqlite:///{tmp_path}/work.db", requests_per_minute=0)
    async with Penstock(settings=settings, extensions=["events", recorder]) as made:
        yield made


@pytest.fixture
async def server(app: Penstock) -> AsyncIterator[FastAPI]:
    made = create_server(app, trusts_callers=True)
    async with made.router.lifespan_context(made):
        yield made


def value(found: Any) -> dict[str, Any]:
    name = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    return {name[type(found)]: str(found) if type(found) is int else found}


def attributes(**told: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": value(each)} for key, each in told.items()]


def logs(*records: tuple[int, str, dict[str, Any]], **resource: Any) -> dict[str, Any]:
    """A request as an exporter writes it in JSON."""
    found = [
        {
            "timeUnixNano": str((NOON + at) * 1_000_000),
            "body": {"stringValue": f"claude_code.{name}"},
            "attributes": attributes(session__id="otel-9", event__name=name, **told),
        }
        for at, name, told in records
    ]
    told = attributes(service__name="claude-code", host__name="ann's laptop", **resource)
    scope = {"scope": {"name": "com.anthropic.claude_code.events"}, "logRecords": found}
    return {"resourceLogs": [{"resource": {"attributes": told}, "scopeLogs": [scope]}]}


PROMPT = (0, "user_prompt", {"prompt": "Count.", "prompt__id": "q1", "user__email": "ann"})
REQUEST = (
    2_000,
    "api_request",
    {"model": "claude-opus-4-6", "input_tokens": 100, "output_tokens": 7, "prompt__id": "q1"},
)


async def test_log_records_become_a_conversation(app: Penstock, http: Http) -> None:  # noqa: F811
    answer = await http.post(LOGS, json=logs(PROMPT, REQUEST))
    assert (answer.status_code, answer.json()) == (200, {"partialSuccess": {}})
    assert (await http.post(LOGS, json=logs(PROMPT, REQUEST))).status_code == 200
    await catch_up(app, conversations.NAME)
    view = await Sessions(app).get("otel-9")
    [turn] = view.turns
    assert (turn.prompt, turn.model, turn.tokens.output) == ("Count.", "claude-opus-4-6", 7)
    assert view.row.messages == 1, "what came again is there once"
    for event in await app.events.find(EventFilter(session_id="otel-9")):
        assert not {"user.email", "host.name"} & set(event.payload), "who and where is not kept"


async def test_what_hooks_have_written_down_is_not_written_once_more(
    app: Penstock,
    http: Http,  # noqa: F811
) -> None:
    hook = Captured(
        platform="claude_code",
        session_id="otel-9",
        hook_type="UserPromptSubmit",
        event_type="user_prompt",
        event_id="h1",
        timestamp=NOON,
        payload={"prompt": "Count."},
        source="hook",
        messages=(Message("user", "Count."),),
    )
    await write(app, [hook])
    await http.post(LOGS, json=logs(PROMPT, REQUEST))
    await catch_up(app, conversations.NAME)
    view = await Sessions(app).get("otel-9")
    assert (view.row.turns, view.row.messages, view.row.tokens.input) == (1, 1, 100)


async def test_points_of_metrics_are_kept(app: Penstock, http: Http) -> None:  # noqa: F811
    point = {"timeUnixNano": str(NOON * 1_000_000), "asInt": "42"}
    mine = {**point, "attributes": attributes(session__id="otel-9", type="added")}
    found = [
        {"name": "claude_code.lines_of_code.count", "sum": {"dataPoints": [mine, point]}},
        {"name": "other.metric", "gauge": {"dataPoints": [mine]}},
        {"name": "claude_code.some", "histogram": {"dataPoints": [mine]}},
    ]
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": found}]}]}
    assert (await http.post(METRICS, json=body)).status_code == 200
    [event] = await app.events.find(EventFilter(session_id="otel-9"))
    assert (event.hook_type, event.payload["value"]) == ("lines_of_code.count", 42)


def counted(at: int, kind: str, value: int, **more: Any) -> dict[str, Any]:
    """A request that tells of tokens that were spent."""
    told = attributes(session__id="otel-9", type=kind, model="claude-sonnet-4-6")
    point = {"timeUnixNano": str((NOON + at) * 1_000_000), "asInt": str(value), "attributes": told}
    metric = {"name": "claude_code.token.usage", "sum": {"dataPoints": [point], **more}}
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}


async def test_tokens_of_metrics_count_until_records_tell_of_them(
    app: Penstock,
    http: Http,  # noqa: F811
) -> None:
    await http.post(LOGS, json=logs(PROMPT))
    for body in (
        counted(1_000, "input", 30),
        counted(1_000, "cacheRead", 500),
        counted(2_000, "input", 12),
        counted(2_000, "output", 7),
        counted(3_000, "input", 42, aggregationTemporality=2),
    ):
        assert (await http.post(METRICS, json=body)).status_code == 200
    await catch_up(app, conversations.NAME)
    row = (await Sessions(app).get("otel-9")).row
    tokens = row.tokens
    assert (row.turns, tokens.input, tokens.output, tokens.cache_read) == (1, 42, 7, 500)
    await http.post(LOGS, json=logs(REQUEST))
    await http.post(METRICS, json=counted(4_000, "input", 100))
    await catch_up(app, conversations.NAME)
    view = await Sessions(app).get("otel-9")
    tokens = view.row.tokens
    assert (tokens.input, tokens.cache_read) == (100, view.spent[0].tokens.cache_read)
    assert view.turns[0].tokens.input == 100


async def test_records_of_others_are_passed_over(app: Penstock, http: Http) -> None:  # noqa: F811
    theirs = logs(PROMPT)
    theirs["resourceLogs"][0]["resource"]["attributes"] = attributes(service__name="shop")
    assert (await http.post(LOGS, json=theirs)).status_code == 200
    nobodys = logs(PROMPT)
    record = nobodys["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    record["attributes"] = record["attributes"][1:]
    assert (await http.post(LOGS, json=nobodys)).status_code == 200
    assert await app.events.find(EventFilter(platform="claude_code")) == []


async def test_telemetry_has_a_scope_of_its_own(
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    for scope, status in (("record", 200), ("admin", 200), ("enqueue", 403), ("read", 403)):
        headers = await make_token(scope)
        answer = await http.post(LOGS, json=logs(PROMPT), headers=headers)
        assert answer.status_code == status, scope
    headers = await make_token("record")
    assert (await http.get("/api/jobs", headers=headers)).status_code == 403


async def test_a_tenants_token_records_for_its_tenant(
    app: Penstock,
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    headers = await make_token("record", tenant="acme")
    assert (await http.post(LOGS, json=logs(PROMPT), headers=headers)).status_code == 200
    [event] = await app.events.find(EventFilter(session_id="otel-9"))
    assert event.tenant_id == "acme"


async def test_a_request_is_bounded_packed_or_not(http: Http) -> None:  # noqa: F811
    packed = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    whole = gzip.compress(httpx.Request("POST", "http://x", json=logs(PROMPT)).content)
    assert (await http.post(LOGS, content=whole, headers=packed)).status_code == 200
    bomb = gzip.compress(b"{}" + b" " * OTLP_LIMIT)
    assert (await http.post(LOGS, content=bomb, headers=packed)).status_code == 422
    assert (await http.post(LOGS, content=whole[:-9], headers=packed)).status_code == 422
    assert (await http.post(LOGS, content=b"x", headers=packed)).status_code == 422
    other = {"Content-Encoding": "br", "Content-Type": "application/json"}
    assert (await http.post(LOGS, content=whole, headers=other)).status_code == 422
    large = {"Content-Type": "application/json"}
    answer = await http.post(LOGS, content=b" " * (OTLP_LIMIT + 1), headers=large)
    assert answer.status_code == 413
    assert (
        await http.post(LOGS, content=b"{}", headers={"Content-Type": "text/plain"})
    ).status_code == 415


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, content: bytes | int) -> bytes:
    """A field of protobuf: bytes with their length, or a number of eight bytes."""
    if isinstance(content, int):
        return varint(number << 3 | 1) + struct.pack("<Q", content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def pair(key: str, kind: int, content: bytes | int) -> bytes:
    told = varint(kind << 3) + varint(content) if isinstance(content, int) else field(kind, content)
    return field(1, key.encode()) + field(2, told)


def test_protobuf_says_what_json_does() -> None:
    record = field(1, (NOON + 2_000) * 1_000_000) + field(5, field(1, b"claude_code.api_request"))
    for told in (
        pair("session.id", 1, b"otel-9"),
        pair("input_tokens", 3, 100),
        pair("less", 3, (1 << 64) - 5),
        pair("good", 2, 1),
        pair("list", 5, field(1, field(1, "ä".encode()))),
        pair("map", 6, field(1, pair("a", 1, b"b"))),
        pair("unknown", 9, b"x"),
    ):
        record += field(6, told)
    record += field(12, b"claude_code.api_request")
    resource = field(1, pair("service.name", 1, b"claude-code"))
    body = field(1, field(1, resource) + field(2, field(1, b"scope") + field(2, record)))
    [found] = otlp.logs(body, otlp.PROTOBUF)
    assert (found.name, found.at) == ("claude_code.api_request", NOON + 2_000)
    assert found.told == {
        "service.name": "claude-code",
        "session.id": "otel-9",
        "input_tokens": 100,
        "less": -5,
        "good": True,
        "list": ["ä"],
        "map": {"a": "b"},
        "unknown": None,
    }
    point = field(3, NOON * 1_000_000) + varint(4 << 3 | 1) + struct.pack("<d", 1.5)
    point += field(7, pair("session.id", 1, b"otel-9"))
    metric = field(1, b"claude_code.cost.usage") + field(7, field(1, point))
    [found] = otlp.metrics(field(1, field(2, field(2, metric))), otlp.PROTOBUF)
    assert (found.name, found.value) == ("claude_code.cost.usage", 1.5)


async def test_protobuf_is_taken_over_http(app: Penstock, http: Http) -> None:  # noqa: F811
    told = field(6, pair("session.id", 1, b"otel-9"))
    record = field(1, NOON * 1_000_000) + field(5, field(1, b"claude_code.api_error")) + told
    body = field(1, field(2, field(2, record)))
    assert (await http.post(LOGS, content=body, headers=PROTOBUF)).status_code == 200
    [event] = await app.events.find(EventFilter(session_id="otel-9"))
    assert (event.event_type, event.hook_type) == ("error", "api_error")


@pytest.mark.parametrize(
    "body",
    [b"\x0a", b"\x0a\xff", b"\x0a\x05ab", b"\x0f", b"\xff" * 20, field(1, b"\x0a" * 50)],
)
def test_what_is_no_protobuf_is_refused_in_a_sentence(body: bytes) -> None:
    with pytest.raises(InvalidOption, match="OTLP"):
        otlp.logs(body, otlp.PROTOBUF)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"1"])
def test_what_is_no_request_is_refused_in_a_sentence(body: bytes) -> None:
    with pytest.raises(InvalidOption, match="OTLP"):
        otlp.logs(body, "application/json")


def test_what_does_not_fit_makes_nothing() -> None:
    deep: Any = {"stringValue": "x"}
    for _ in range(100):
        deep = {"arrayValue": {"values": [deep]}}
    odd = {
        "attributes": [{"key": "k", "value": deep}, 5, {"key": "n", "value": {"intValue": "x"}}],
        "timeUnixNano": "9" * 99,
    }
    for told in (
        {},
        {"resourceLogs": 5},
        {"resourceLogs": [5, {"scopeLogs": [{"logRecords": 1}]}]},
    ):
        assert otlp.logs(httpx.Request("POST", "http://x", json=told).content, "") == []
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [odd]}]}]}
    [found] = otlp.logs(httpx.Request("POST", "http://x", json=body).content, "")
    assert (found.name, found.at, found.told["n"]) == ("", 0, None)
