"""A page that asks whether somebody means it, before something is gone for good."""

from collections.abc import Mapping

from msgspec import Struct
from starlette.responses import Response

from penstock.server.dashboard.visit import Visit


class Question(Struct, frozen=True, kw_only=True):
    """What is asked, what the button says, where it is sent with which fields, and the way back."""

    title: str
    text: str
    label: str
    action: str
    back: str
    facts: Mapping[str, object] = {}
    hidden: Mapping[str, str] = {}


async def ask(visit: Visit, here: str, question: Question) -> Response:
    """Show a question; nothing changes before its form is sent."""
    return await visit.page("confirm.html", here, live=False, question=question)
