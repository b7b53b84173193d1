"""An application with a worker class, that a process of its own can import."""

import os
from typing import Any, ClassVar

from msgspec import Struct

from penstock import Context, Penstock, Settings
from penstock.apps.agents.worker import Worker, add
from penstock.model.errors import InvalidOption

app = Penstock("sqlite:///:memory:", settings=Settings())
told: list[Any] = []


class OrderData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What to order."""

    item_name: str
    how_many: int = 1
    notes: list[str] = []

    def __post_init__(self) -> None:
        if self.how_many < 1:
            raise InvalidOption("howMany", self.how_many, "1 or more")


class Ordered(Struct, rename="camel", omit_defaults=True):
    """What was ordered."""

    item_name: str
    done_in: int
    reason: str = ""


class Order(Worker[OrderData, Ordered]):
    """Order something."""

    name = "order"
    example: ClassVar = {"itemName": "tea"}

    async def process(self, data: OrderData, ctx: Context) -> Ordered:
        ctx.progress({"phase": "ordering", "percent": 40, "batch": 2})
        data.notes.append("seen")
        if data.item_name == "bad":
            raise Temporary(data.how_many)
        if data.item_name == "broken":
            raise ValueError("out of order")
        return Ordered(item_name=f"{data.item_name} {data.notes}", done_in=os.getpid())

    async def on_start(self, ctx: Context) -> None:
        told.append(("start", ctx.job.tenant_id))

    async def on_complete(self, ctx: Context, result: Ordered) -> None:
        told.append(("complete", result.item_name))

    async def on_failed(self, ctx: Context, error: BaseException) -> None:
        told.append(("failed", type(error).__name__, ctx.will_retry))

    async def on_progress(self, ctx: Context, progress: Any) -> None:
        told.append(("progress", progress))


class Temporary(Exception):
    """A server's answer."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


class Stubborn(Order):
    """The same, never tried again."""

    name = "stubborn"

    def is_retryable(self, error: BaseException) -> bool:
        return False


class Eager(Order):
    """The same, tried again whatever it is."""

    name = "eager"

    def is_retryable(self, error: BaseException) -> bool:
        return True


for worker in (Order, Stubborn, Eager):
    add(app, worker, max_retries=2, retry_delay=0)
