import dataclasses
import enum
import pathlib
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest

from penstock import Penstock
from penstock.model.errors import InvalidArguments, InvalidOption

pytestmark = pytest.mark.thorough("postgres", "valkey")


@dataclasses.dataclass
class Address:
    street: str
    number: int


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Customer(pydantic.BaseModel):
    name: str
    born: date
    address: Address | None = None


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


VALUES: list[tuple[Any, Any]] = [
    (int, 3),
    (float, 2.5),
    (bool, True),
    (str, "grüße"),
    (bytes, b"\x00\xff"),
    (Address, Address("Main", 7)),
    (Point, Point(1, 2)),
    (Customer, Customer(name="Ada", born=date(1815, 12, 10), address=Address("M", 1))),
    (datetime, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (date, date(2026, 1, 2)),
    (timedelta, timedelta(minutes=3)),
    (uuid.UUID, uuid.UUID(int=5)),
    (Decimal, Decimal("1.10")),
    (Colour, Colour.BLUE),
    (set[int], {1, 2}),
    (frozenset[str], frozenset({"a"})),
    (tuple[int, str], (1, "a")),
    (pathlib.Path, pathlib.Path("/tmp/a.png")),
    (Point | None, None),
    (Point | None, Point(1)),
    (dict[str, list[Address]], {"a": [Address("Main", 7)]}),
    (list[Customer], [Customer(name="Ada", born=date(1815, 12, 10))]),
    (dict[uuid.UUID, Decimal], {uuid.UUID(int=1): Decimal("2.50")}),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
@pytest.mark.quick("postgres", "valkey")
async def test_an_argument_and_a_result_come_back_with_their_type(
    app: Penstock, drain: Any, kind: Any, value: Any
) -> None:
    seen: list[Any] = []

    async def handler(value: Any) -> Any:
        seen.append(value)
        return value

    handler.__annotations__ = {"value": kind, "return": kind}
    echo = app.job(handler)
    job = await echo.enqueue(value)
    await drain()
    result = await job.result(timeout=30)
    assert (seen, result) == ([value], value)
    assert type(seen[0]) is type(result) is type(value)


async def test_an_argument_without_an_annotation_comes_back_as_plain_data(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def echo(value):  # type: ignore[no-untyped-def]
        return value

    job = await echo.enqueue({"a": [1, None]})
    await drain()
    assert await job.result(timeout=30) == {"a": [1, None]}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, "three", "int"),
        (str, 3, "str"),
        (Address, {"street": "Main"}, "number"),
        (Point, Address("Main", 7), "x"),
        (datetime, "yesterday", "datetime"),
        (uuid.UUID, "not one", "UUID"),
        (Decimal, "many", "Decimal"),
        (Colour, "green", "Colour"),
        (Customer, {"name": "Ada"}, "born"),
        (list[int], [1, "two"], "int"),
    ],
)
async def test_a_wrong_argument_is_refused_at_enqueue_by_name_and_expected_type(
    app: Penstock, kind: Any, value: Any, expected: str
) -> None:
    async def handler(first: int, value: Any) -> None: ...

    handler.__annotations__ = {"first": int, "value": kind, "return": None}
    task = app.job(name="task")(handler)
    with pytest.raises(InvalidArguments) as refused:
        await task.enqueue(1, value)
    assert "'value'" in str(refused.value)
    assert expected in str(refused.value)
    assert "'task'" in str(refused.value)
    assert await app.find() == []


async def test_a_call_that_does_not_fit_the_signature_names_the_argument(app: Penstock) -> None:
    @app.job
    async def resize(path: str, width: int = 100) -> None: ...

    for call, argument in (
        (lambda: resize.new().complete(), "path"),
        (lambda: resize.new("a", 1, 2), "number 3"),  # type: ignore[call-overload]
        (lambda: resize.new("a", path="b"), "path"),  # type: ignore[call-overload]
        (lambda: resize.new("a", height=3), "height"),  # type: ignore[call-overload]
    ):
        with pytest.raises(InvalidArguments) as refused:
            call()
        assert refused.value.argument == argument


async def test_defaults_keyword_only_and_open_arguments_reach_the_handler(
    app: Penstock, drain: Any
) -> None:
    seen: list[Any] = []

    @app.job
    async def report(day: date, *, copies: int = 2, **labels: str) -> None:
        seen.append((day, copies, labels))

    await report.enqueue(date(2026, 1, 1))
    await report.enqueue(date(2026, 1, 2), copies=3, colour="red")
    await drain()
    assert seen == [(date(2026, 1, 1), 2, {}), (date(2026, 1, 2), 3, {"colour": "red"})]


async def test_an_argument_json_cannot_hold_is_named(app: Penstock) -> None:
    @app.job
    async def keep(number: int, thing: Any) -> None: ...

    with pytest.raises(InvalidArguments, match=r"'thing'.*JSON.*object"):
        await keep.enqueue(1, object())


async def test_an_argument_that_contains_itself_is_refused(app: Penstock) -> None:
    @app.job
    async def keep(thing: Any) -> None: ...

    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidArguments, match="'thing'"):
        await keep.enqueue(loop)


def test_a_handler_with_unnamed_arguments_is_refused_when_registered(app: Penstock) -> None:
    async def many(*values: int) -> None: ...

    with pytest.raises(InvalidOption, match="named parameters"):
        app.job(many)
