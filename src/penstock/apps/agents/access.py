"""Who asks, and for which tenant: what routes, pages and commands share."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.extension import Request
from penstock.model.clock import milliseconds
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Actor, Operator, own_tenant

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.namespace import Agents


def agents_in(app: "Penstock") -> "Agents":
    """Return `app.agents`, with its type."""
    found: Agents = app.extensions.namespace("agents")
    return found


def agents_of(request: Request) -> "Agents":
    """Return what the application that is asked has of the agent workers."""
    return agents_in(request.app)


def actor_of(request: Request) -> Actor:
    """Return who asks; what they do is on record."""
    return Operator(request.app, request.actor, request.tenant).actor


def named_tenant(request: Request, named: str | None) -> str | None:
    """Return the tenant that is meant; None is all of them. Another's is refused."""
    return own_tenant(request.tenant, named)


def given(request: Request, *names: str) -> dict[str, str]:
    """Return what stands in a page's address, by name; empty where nothing does."""
    return {name: request.query.get(name, "").strip() for name in names}


def wanted(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was told, with None where nothing was."""
    return {name: value or None for name, value in told.items()}


def number(form: Mapping[str, str], name: str) -> float | None:
    """Return a number of a form; None if nothing was written."""
    text = form.get(name, "").replace(",", "")
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidOption(name, text, "a number") from None


def ms(moment: datetime | None) -> int | None:
    """Return a time as records have it."""
    return None if moment is None else milliseconds(moment)
