"""One statement made of several memories, by the model of the settings or by extraction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.apps.agents.model import Extractive, complete, is_extractive, model_of

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

MAX_TOKENS = 200
TEMPERATURE = 0.3

_PROMPT = """\
Synthesize the following related memories into a single coherent fact or concept:

{items}

Provide a concise synthesis that captures the key information."""


class Synthesis(Struct, frozen=True):
    """What several memories say together, and who wrote it."""

    content: str
    by: str


async def synthesise(app: "Penstock", tenant: str, contents: Sequence[str]) -> Synthesis:
    """Say what memories say together; beyond the tenant's quota, by extraction."""
    items = "\n".join(
        f"{number}. {' '.join(content.split())}" for number, content in enumerate(contents, 1)
    )
    model = model_of(app)
    prompt = _PROMPT.format(items=items)
    if not is_extractive(model):
        from penstock.apps.agents.maintenance.quotas import QuotaExceeded

        try:
            done = await complete(
                app, tenant, prompt, max_tokens=MAX_TOKENS, temperature=TEMPERATURE
            )
        except QuotaExceeded:
            pass
        else:
            if done.text:
                return Synthesis(done.text, model.name)
    extractive = Extractive()
    done = await extractive.complete(prompt, max_tokens=MAX_TOKENS, temperature=TEMPERATURE)
    return Synthesis(done.text, extractive.name)
