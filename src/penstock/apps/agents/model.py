"""Models that write: Anthropic's or one's own if the settings name one, and extraction if not.

Every call to a model that costs something reserves its tenant's tokens and money before, and
settles what it took after.
"""

import asyncio
import re
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from penstock.app.keys import read_key
from penstock.apps.agents.memory.changes import restates
from penstock.apps.agents.memory.language import sentences, statement
from penstock.events.enrichment import Breaker
from penstock.extension import load
from penstock.model.errors import InvalidOption, MissingExtra, PenstockError
from penstock.model.redact import redact

if TYPE_CHECKING:
    from anthropic.types import Message

    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import AgentsSettings, ModelSettings

CHARACTERS_PER_TOKEN = 3
"""Fewer than there are, so that what is reserved for a call is enough."""
_ITEM = re.compile(r"^\s*\d+[.)] +(.+)$", re.MULTILINE)
_FINAL = (400, 401, 403, 404, 413, 422)


class Completion(Struct, frozen=True, kw_only=True):
    """What a model wrote, and how many tokens it took."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


class Model(Protocol):
    """Writes on from a prompt.

    A provider of one's own is called with `[penstock.agents.model.settings]` as keywords. One that
    raises `ModelAway` is asked again later.
    """

    @property
    def name(self) -> str:
        """Name it, as a memory that it wrote tells."""
        ...

    async def complete(self, prompt: str, *, max_tokens: int, temperature: float) -> Completion:
        """Return what it writes."""
        ...


class ModelAway(PenstockError):
    """A model that does not answer, or not now; `after` is how many seconds to wait, if told."""

    def __init__(self, name: str, problem: str, after: float | None = None) -> None:
        self.name = name
        self.problem = problem
        self.after = after
        super().__init__(f"Model {name} is away: {problem}.")


class Extractive:
    """Summarises without a model: it takes the items of a prompt, or else its sentences.

    What restates another is left out, and the rest stays as it was said; if that is too long, what
    says most of what all of them say is kept.
    """

    name = "extractive"

    async def complete(self, prompt: str, *, max_tokens: int, temperature: float) -> Completion:
        """Return the items of a prompt without those that restate others."""
        del temperature
        items = _ITEM.findall(prompt) or [prompt]
        return Completion(text=extract(items, max_tokens * CHARACTERS_PER_TOKEN))


def extract(texts: Sequence[str], most: int) -> str:
    """What texts say, each thing once, in at most so many characters."""
    said: list[str] = []
    for sentence in (each for text in texts for each in sentences(text)):
        if any(restates(known, sentence) for known in said):
            continue
        said = [known for known in said if not restates(sentence, known)]
        said.append(sentence)
    if sum(map(len, said)) + len(said) > most:
        said = _most_telling(said, most)
    return " ".join(each if each[-1] in ".!?" else f"{each}." for each in said)[:most].strip()


def _most_telling(said: Sequence[str], most: int) -> list[str]:
    """Those that share most with the others, as many as there is room for, in their order."""
    words = [statement(each).vocabulary for each in said]
    shared = [sum(len(mine & theirs) for theirs in words) / (1 + len(mine)) for mine in words]
    chosen: list[int] = []
    room = most
    for n in sorted(range(len(said)), key=lambda n: (-shared[n], n)):
        if len(said[n]) + 2 <= room:
            chosen.append(n)
            room -= len(said[n]) + 2
    return [said[n] for n in sorted(chosen)] or [said[0][: most - 1]]


class Anthropic:
    """Models of Anthropic, or of whoever speaks the same at the base URL."""

    def __init__(self, app: "Penstock", settings: "ModelSettings") -> None:
        self.name = settings.name
        self._app = app
        self._settings = settings

    async def complete(self, prompt: str, *, max_tokens: int, temperature: float) -> Completion:
        """Have the model write; no redirect is followed and no proxy taken from outside."""
        try:
            # It takes seconds to load, in which the event loop goes on.
            await asyncio.to_thread(import_module, "anthropic")
            import anthropic
        except ImportError as error:
            raise MissingExtra("model", "anthropic") from error
        told = self._settings
        breaker = _breakers.setdefault(told.base_url, Breaker())
        now = self._app.store.clock.monotonic()
        if not breaker.lets_through(now):
            raise ModelAway(self.name, "it did not answer several times in a row")
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False, follow_redirects=False)
        try:
            async with anthropic.AsyncAnthropic(
                api_key=read_key(told.key),
                base_url=told.base_url,
                timeout=told.timeout,
                max_retries=0,
                http_client=http,
            ) as client:
                message = await self._ask(client, prompt, max_tokens, temperature)
        except (anthropic.APIConnectionError, anthropic.APIStatusError) as error:
            if getattr(error, "status_code", 503) in _FINAL:
                raise
            breaker.failed(now)
            headers = getattr(getattr(error, "response", None), "headers", {})
            after = headers.get("retry-after", "")
            problem = redact(f"{type(error).__name__}: {error}")[:200]
            wait = float(after) if after.isdigit() else None
            raise ModelAway(self.name, problem, wait) from error
        breaker.worked()
        return Completion(
            text="".join(block.text for block in message.content if block.type == "text").strip(),
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
        )

    async def _ask(
        self, client: Any, prompt: str, max_tokens: int, temperature: float
    ) -> "Message":
        """Ask with a temperature, or without one a model that takes none."""
        import anthropic

        asked = {
            "model": self.name,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": prompt}],
        }
        try:
            message: Message = await client.messages.create(
                **asked, extra_body={"temperature": temperature}
            )
        except anthropic.BadRequestError as error:
            if "temperature" not in str(error):
                raise
            message = await client.messages.create(**asked)
        return message


_breakers: dict[str, Breaker] = {}


def model_of(app: "Penstock") -> Model:
    """Return the model that the settings name; without one, texts are summarised by extraction."""
    settings: AgentsSettings = app.extensions.settings("agents")
    told = settings.model
    if not told.provider:
        return Extractive()
    if told.provider == "anthropic":
        return Anthropic(app, told)
    if ":" not in told.provider:
        expected = "anthropic, a module:name, or nothing"
        raise InvalidOption("model.provider", told.provider, expected)
    made: Model = load(told.provider)(**told.settings)
    return made


def is_extractive(model: Model) -> bool:
    """Whether calls cost nothing, so that nobody has to be asked for each."""
    return isinstance(model, Extractive)


async def complete(
    app: "Penstock", tenant: str, prompt: str, *, max_tokens: int = 200, temperature: float = 0.3
) -> Completion:
    """Have the model of the settings write, within what the tenant may still use."""
    model = model_of(app)
    if is_extractive(model):
        return await model.complete(prompt, max_tokens=max_tokens, temperature=temperature)
    from penstock.apps.agents.maintenance.quotas import reserved

    settings: AgentsSettings = app.extensions.settings("agents")
    most = (len(prompt) // CHARACTERS_PER_TOKEN + 100, max_tokens)
    async with reserved(app, tenant, _measures(settings.model, *most)) as took:
        done = await model.complete(prompt, max_tokens=max_tokens, temperature=temperature)
        took.update(_measures(settings.model, done.input_tokens, done.output_tokens))
    return done


def _measures(settings: "ModelSettings", given: int, written: int) -> dict[str, Any]:
    dollars = (given * settings.input_price + written * settings.output_price) / 1e6
    return {"tokens": given + written, "money": dollars}
