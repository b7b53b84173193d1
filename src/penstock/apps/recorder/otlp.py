"""OTLP, as exporters send it over HTTP: log records and points of metrics, in JSON or protobuf.

Protobuf is read by the numbers of its fields; of what is not known here nothing is made.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.model.clock import LATEST
from penstock.model.errors import InvalidOption

PROTOBUF = "application/x-protobuf"
NANOSECONDS = 1_000_000
DEEPEST = 16


CUMULATIVE = (2, "AGGREGATION_TEMPORALITY_CUMULATIVE")
"""A sum since its beginning; Claude Code tells what was added since the last time."""


class Record(NamedTuple):
    """A log record or a point of a metric: what it is called, when it was, and all it tells."""

    name: str
    at: int
    told: dict[str, Any]
    value: float | None = None


def logs(body: bytes, media: str) -> list[Record]:
    """The log records of a request."""
    request = _decoded(body, media, LOGS)
    found: list[Record] = []
    for around, scope in _scopes(request, "resourceLogs", "scopeLogs"):
        for each in _list(scope.get("logRecords")):
            told = {**around, **_attributes(each.get("attributes"))}
            text = _value(each.get("body"))
            name = each.get("eventName") or told.get("event.name") or text
            at = _time(each.get("timeUnixNano")) or _time(each.get("observedTimeUnixNano"))
            found.append(Record(name if isinstance(name, str) else "", at, told))
    return found


def metrics(body: bytes, media: str) -> list[Record]:
    """The points of the sums and gauges of a request."""
    request = _decoded(body, media, METRICS)
    found: list[Record] = []
    for around, scope in _scopes(request, "resourceMetrics", "scopeMetrics"):
        for metric in _list(scope.get("metrics")):
            kept = metric.get("sum") or metric.get("gauge")
            if not isinstance(kept, Mapping):
                continue
            for point in _list(kept.get("dataPoints")):
                told = {**around, **_attributes(point.get("attributes"))}
                if kept.get("aggregationTemporality") in CUMULATIVE:
                    told["temporality"] = "cumulative"
                value = _number(point.get("asDouble", point.get("asInt")))
                at = _time(point.get("timeUnixNano"))
                found.append(Record(str(metric.get("name") or ""), at, told, value))
    return found


def _scopes(
    request: Mapping[str, Any], resources: str, scopes: str
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    """Each scope, and what its resource says of itself."""
    for each in _list(request.get(resources)):
        resource = each.get("resource")
        around = _attributes(resource.get("attributes")) if isinstance(resource, Mapping) else {}
        for scope in _list(each.get(scopes)):
            yield around, scope


def _list(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _attributes(found: Any) -> dict[str, Any]:
    return {str(each.get("key")): _value(each.get("value")) for each in _list(found)}


def _value(found: Any, depth: int = 0) -> Any:
    """A value of OTLP as JSON has it."""
    if not isinstance(found, Mapping) or depth > DEEPEST:
        return None
    for name, each in found.items():
        if name == "intValue":
            return _whole(each)
        if name in ("stringValue", "boolValue", "doubleValue"):
            return each
        if name == "arrayValue" and isinstance(each, Mapping):
            return [_value(one, depth + 1) for one in _list(each.get("values"))]
        if name == "kvlistValue" and isinstance(each, Mapping):
            pairs = _list(each.get("values"))
            return {str(one.get("key")): _value(one.get("value"), depth + 1) for one in pairs}
    return None


def _time(nanoseconds: Any) -> int:
    at = (_whole(nanoseconds) or 0) // NANOSECONDS
    return at if 0 <= at <= LATEST else 0


def _whole(number: Any) -> int | None:
    """A whole number, which JSON may hold as a text."""
    try:
        return int(number)
    except (TypeError, ValueError, OverflowError):
        return None


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _decoded(body: bytes, media: str, kind: "Message") -> Mapping[str, Any]:
    try:
        if media.startswith(PROTOBUF):
            return _message(memoryview(body), kind, 0)
        found = msgspec.json.decode(body)
    except (ValueError, IndexError, struct.error, RecursionError) as error:
        raise InvalidOption("body", "a request", "one that OTLP defines") from error
    if not isinstance(found, Mapping):
        raise InvalidOption("body", "a request", "a JSON object that OTLP defines")
    return found


class Field(NamedTuple):
    """A field of a message: what JSON calls it, of what it is, and whether there are several."""

    name: str
    kind: "str | Message"
    several: bool = False


Message = Mapping[int, Field]

_ANY: dict[int, Field] = {
    1: Field("stringValue", "text"),
    2: Field("boolValue", "bool"),
    3: Field("intValue", "int"),
    4: Field("doubleValue", "double"),
}
_PAIR: Message = {1: Field("key", "text"), 2: Field("value", _ANY)}
_ANY[5] = Field("arrayValue", {1: Field("values", _ANY, True)})
_ANY[6] = Field("kvlistValue", {1: Field("values", _PAIR, True)})
_RESOURCE: Message = {1: Field("attributes", _PAIR, True)}
_RECORD: Message = {
    1: Field("timeUnixNano", "fixed"),
    5: Field("body", _ANY),
    6: Field("attributes", _PAIR, True),
    11: Field("observedTimeUnixNano", "fixed"),
    12: Field("eventName", "text"),
}
_POINT: Message = {
    3: Field("timeUnixNano", "fixed"),
    4: Field("asDouble", "double"),
    6: Field("asInt", "signed"),
    7: Field("attributes", _PAIR, True),
}
_POINTS: Message = {
    1: Field("dataPoints", _POINT, True),
    2: Field("aggregationTemporality", "int"),
}
_METRIC: Message = {1: Field("name", "text"), 5: Field("gauge", _POINTS), 7: Field("sum", _POINTS)}


def _request(resources: str, scopes: str, parts: str, part: Message) -> Message:
    within: Message = {2: Field(parts, part, True)}
    return {
        1: Field(resources, {1: Field("resource", _RESOURCE), 2: Field(scopes, within, True)}, True)
    }


LOGS = _request("resourceLogs", "scopeLogs", "logRecords", _RECORD)
METRICS = _request("resourceMetrics", "scopeMetrics", "metrics", _METRIC)


def _message(data: memoryview, kind: Message, depth: int) -> dict[str, Any]:
    """A message of protobuf, as JSON would have it."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    found: dict[str, Any] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        raw: Any
        match tag & 7:
            case 0:
                raw, at = _varint(data, at)
            case 1:
                raw, at = bytes(data[at : at + 8]), at + 8
            case 2:
                size, at = _varint(data, at)
                raw, at = data[at : at + size], at + size
            case 5:
                raw, at = bytes(data[at : at + 4]), at + 4
            case other:
                raise ValueError(f"there is no wire type {other}")
        if at > len(data):
            raise ValueError("it ends too early")
        field = kind.get(tag >> 3)
        if field is not None:
            value = _read(raw, field.kind, depth)
            if field.several:
                found.setdefault(field.name, []).append(value)
            else:
                found[field.name] = value
    return found


def _read(raw: Any, kind: "str | Message", depth: int) -> Any:
    if not isinstance(kind, str):
        return _message(raw, kind, depth + 1)
    if kind == "text":
        return str(raw, "utf-8", "replace")
    if kind == "bool":
        return bool(raw)
    if kind == "int":
        return raw - (1 << 64) if raw >> 63 else raw
    return struct.unpack({"double": "<d", "fixed": "<Q", "signed": "<q"}[kind], raw)[0]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
