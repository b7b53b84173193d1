"""Models: asked for an answer of a given shape, within budgets, and what each call cost.

There may be none: then `ask` answers None, and whoever asked does without. Only what a model fills
into the shape is an answer; whatever else it writes, an apology or an error, is no answer at all.
"""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from penstock.app.keys import read_key
from penstock.apps.recorder.outbound import Away, asking_first, breaker_of
from penstock.apps.recorder.prices import cost
from penstock.model.errors import MissingExtra, PenstockError
from penstock.model.ids import new_id
from penstock.model.redact import redact
from penstock.store.contract.metrics import DAY_MS

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.extension import ModelSettings, RecorderSettings
    from penstock.events.event import Session

T = TypeVar("T", bound=Struct)

CHARACTERS_PER_TOKEN = 3
"""Fewer than there are, so that what is reserved for a call is enough."""
BESIDE = 1_000
"""Tokens of the shape of an answer and of what stands around a text."""
UNKNOWN_PRICE = 100.0
"""Dollars per million tokens that a model whose price nobody knows is taken to cost."""


class NotAnAnswer(PenstockError):
    """What a model wrote in place of what it was asked for."""

    def __init__(self, model: str, problem: str) -> None:
        self.model = model
        self.problem = problem
        super().__init__(f"Model {model} gave no answer that can be used: {problem}.")


class Asked(Struct, frozen=True, kw_only=True):
    """A question: what the model is to do, the text it is about, and the shape of the answer."""

    instruction: str
    text: str
    shape: type[Struct]
    most_tokens: int = 4_000

    @property
    def most_input(self) -> int:
        """No more tokens than these go in."""
        return (len(self.instruction) + len(self.text)) // CHARACTERS_PER_TOKEN + BESIDE


class Reply(Struct, frozen=True, kw_only=True):
    """What a provider answered, unchecked, and how many tokens it took."""

    value: Any
    input_tokens: int
    output_tokens: int


class Provider(Protocol):
    """Somebody who runs models."""

    model: str

    async def ask(self, asked: Asked) -> Reply:
        """Have a model answer; Away if it cannot now."""
        ...


class Anthropic:
    """Models of Anthropic, or of whoever speaks the same at the base URL."""

    def __init__(self, settings: "RecorderSettings", now: int) -> None:
        self.model = settings.model.name
        self._settings = settings
        self._now = now

    async def ask(self, asked: Asked) -> Reply:
        """Have the model call a tool whose argument is the answer."""
        try:
            import anthropic
        except ImportError as error:
            raise MissingExtra("model", "anthropic") from error
        told: ModelSettings = self._settings.model
        breaker = breaker_of(told.base_url)
        if not breaker.lets_through(self._now):
            raise Away("The model", "it did not answer several times in a row")
        shape = msgspec.json.schema(asked.shape)
        http = anthropic.DefaultAsyncHttpxClient(
            trust_env=False,
            follow_redirects=False,
            event_hooks={"request": [asking_first(self._settings)]},
        )
        try:
            async with anthropic.AsyncAnthropic(
                api_key=read_key(told.key),
                base_url=told.base_url,
                timeout=told.timeout,
                max_retries=0,
                http_client=http,
            ) as client:
                message = await client.messages.create(
                    model=self.model,
                    max_tokens=asked.most_tokens,
                    system=asked.instruction,
                    messages=[{"role": "user", "content": asked.text}],
                    tools=[{"name": "answer", "input_schema": _inlined(shape)}],
                    tool_choice={"type": "tool", "name": "answer"},
                )
        except (anthropic.APIConnectionError, anthropic.APIStatusError) as error:
            if getattr(error, "status_code", 503) in (400, 401, 403, 404, 413, 422):
                raise
            breaker.failed(self._now)
            after = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
            problem = redact(f"{type(error).__name__}: {error}")[:200]
            raise Away("The model", problem, float(after) if after.isdigit() else None) from error
        breaker.worked()
        used = [block.input for block in message.content if block.type == "tool_use"]
        return Reply(
            value=used[0] if used and message.stop_reason == "tool_use" else None,
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
        )


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose root is no reference, as tools want it."""
    name = schema.get("$ref", "").rpartition("/")[2]
    definitions = schema.get("$defs", {})
    return {**definitions[name], "$defs": definitions} if name else schema


class Models:
    """The model of the settings, within its budgets."""

    def __init__(self, app: "Penstock", provider: Provider | None = None) -> None:
        self._app = app
        self._settings: RecorderSettings = app.extensions.settings("recorder")
        self._provider = provider
        if provider is None and self._settings.model.provider:
            self._provider = Anthropic(self._settings, app.store.clock.monotonic())

    @property
    def name(self) -> str | None:
        """Which model is asked; None if none is."""
        return None if self._provider is None else self._provider.model

    async def ask(
        self, purpose: str, session: "Session", conversation: str, asked: Asked, shape: type[T]
    ) -> T | None:
        """The model's answer; None without a model, or if that would be more than a budget."""
        provider = self._provider
        if provider is None:
            return None
        call = new_id()
        if not await self._reserve(call, purpose, session, conversation, asked, provider.model):
            return None
        began = self._app.store.clock.monotonic()
        try:
            reply = await provider.ask(asked)
        except BaseException:
            await self._settle(call, provider.model, "failed", 0, 0, 0)
            raise
        took = self._app.store.clock.monotonic() - began
        used = (reply.input_tokens, reply.output_tokens)
        await self._settle(call, provider.model, "spent", *used, took)
        if reply.value is None:
            raise NotAnAnswer(provider.model, "it wrote something else")
        try:
            return msgspec.convert(reply.value, shape)
        except msgspec.ValidationError as error:
            raise NotAnAnswer(provider.model, redact(str(error))[:200]) from error

    async def _reserve(
        self,
        call: str,
        purpose: str,
        session: "Session",
        conversation: str,
        asked: Asked,
        model: str,
    ) -> bool:
        """Set aside what a call may cost at most, if the budgets have it."""
        budget = self._settings.model
        most = (asked.most_input, asked.most_tokens)

        def work(tx: Any) -> bool:
            tx.recorder.row("hold_costs")
            day = tx.now - tx.now % DAY_MS
            spent = tx.recorder.row("spent", {"since": day, "conversation_id": None})
            ours = tx.recorder.row("spent", {"since": 0, "conversation_id": conversation})
            dollars, tokens, in_session = float(spent[0]), int(spent[1]), int(ours[1])
            price = _cost(model, *most)
            if (
                dollars + price > budget.daily_dollars
                or tokens + sum(most) > budget.daily_tokens
                or in_session + sum(most) > budget.session_tokens
            ):
                return False
            row = (call, session.tenant_id, conversation, purpose, model, *most, price, tx.now)
            tx.recorder.run("reserve_cost", row)
            return True

        return await self._app.transact(work)

    async def _settle(
        self, call: str, model: str, state: str, input_tokens: int, output_tokens: int, took: int
    ) -> None:
        price = _cost(model, input_tokens, output_tokens)
        row = (state, input_tokens, output_tokens, price, took, call)
        await self._app.transact(lambda tx: tx.recorder.run("settle_cost", row))


def _cost(model: str, input_tokens: int, output_tokens: int) -> float:
    known = cost(model, given=input_tokens, output=output_tokens)
    return (input_tokens + output_tokens) * UNKNOWN_PRICE / 1e6 if known is None else known
