"""Pydantic models as arguments and results: each comes back equal, or is refused."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    Json,
    RootModel,
    SecretStr,
    computed_field,
    field_serializer,
)

from penstock import Penstock
from penstock.model.errors import InvalidArguments


class Order(BaseModel):
    number: int
    price: Decimal
    bought: datetime
    token: UUID


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    bought: datetime
    tags: set[str]


class Aliased(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    number: int = Field(alias="orderNumber")
    name: str = Field(serialization_alias="NAME", validation_alias="label")


class BeforeNames(BaseModel):
    """A model as before Pydantic 2.11: it is not to be asked to take names."""

    @classmethod
    def model_validate_json(cls, json_data: Any, *, strict: bool | None = None) -> Any:
        return super().model_validate_json(json_data, strict=strict)


class AliasedBefore(BeforeNames):
    number: int = Field(0, alias="orderNumber")


class NamedBefore(BeforeNames):
    model_config = ConfigDict(populate_by_name=True)
    number: int = Field(0, serialization_alias="NUMBER", validation_alias="orderNumber")


class WrittenBefore(BeforeNames):
    number: int = Field(0, serialization_alias="NUMBER")


class HolderBefore(BeforeNames):
    model_config = ConfigDict(populate_by_name=True)
    inner: AliasedBefore = Field(alias="Inner")


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int

    @computed_field
    def double(self) -> int:
        return 2 * self.number


class Parsed(BaseModel):
    data: Json[list[int]]
    site: HttpUrl


class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str


class Cash(BaseModel):
    kind: Literal["cash"] = "cash"


class Payment(RootModel[Annotated[Card | Cash, Field(discriminator="kind")]]):
    pass


class Login(BaseModel):
    password: SecretStr


class Account(BaseModel):
    logins: list[Login] = []
    name: str = ""


class Revealed(Login):
    @field_serializer("password", when_used="json")
    def reveal(self, value: SecretStr) -> str:
        return value.get_secret_value()


ORDER = Order(
    number=7, price=Decimal("1.10"), bought=datetime(2026, 1, 2, tzinfo=UTC), token=UUID(int=9)
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Order, ORDER),
        (list[Order], [ORDER]),
        (dict[str, Order] | None, {"first": ORDER}),
        (Strict, Strict(bought=datetime(2026, 1, 2, tzinfo=UTC), tags={"a"})),
        (Aliased, Aliased(orderNumber=1, label="x")),
        (AliasedBefore, AliasedBefore(orderNumber=1)),
        (NamedBefore, NamedBefore(number=1)),
        (WrittenBefore, WrittenBefore(number=1)),
        (HolderBefore, HolderBefore(inner=AliasedBefore(orderNumber=1))),
        (Computed, Computed(number=4)),
        (Parsed, Parsed(data="[1, 2]", site=HttpUrl("https://example.com"))),
        (Payment, Payment(Cash())),
        (Account, Account(name="**********")),
        (Revealed, Revealed(password=SecretStr("open sesame"))),
    ],
)
async def test_a_model_comes_back_as_it_was(
    app: Penstock, drain: Any, kind: Any, value: Any
) -> None:
    seen: list[Any] = []

    async def echo(value: Any) -> Any:
        seen.append(value)
        return value

    echo.__annotations__ = {"value": kind, "return": kind}
    job = await app.job(max_retries=0)(echo).enqueue(value)
    await drain()
    assert seen == [value]
    assert await job.result() == value


async def test_a_secret_is_refused_because_it_would_be_stored_as_asterisks(app: Penstock) -> None:
    @app.job
    async def create(account: Account) -> None: ...

    with pytest.raises(InvalidArguments, match=r"'account' .* got Account \(a secret would be st"):
        await create.enqueue(Account(logins=[Login(password=SecretStr("open sesame"))]))


async def test_what_does_not_fit_a_model_is_told_field_by_field(app: Penstock) -> None:
    @app.job
    async def ship(order: Order) -> None: ...

    with pytest.raises(InvalidArguments) as error:
        await app.enqueue_payload("ship", '{"order": {"number": "many", "price": 1, "token": 1}}')
    said = str(error.value)
    assert "number: Input should be a valid integer" in said
    assert "bought: Field required" in said
    assert "errors.pydantic.dev" not in said
