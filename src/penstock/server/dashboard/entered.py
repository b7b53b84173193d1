"""A form that is shown again, with what is wrong beside its fields."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from penstock.model.errors import PenstockError, UnknownType
from penstock.server.problems import Refusal

_SAME: Mapping[str, str] = {}


class Entered(Struct, frozen=True):
    """What stands in a form, and what is wrong with it, by field."""

    values: dict[str, str]
    problems: dict[str, str] = {}

    @property
    def status(self) -> int:
        """The HTTP status of the page that shows it."""
        return 422 if self.problems else 200


def problems_of(
    error: Refusal | PenstockError, fields: Collection[str], called: Mapping[str, str] = _SAME
) -> dict[str, str]:
    """What is wrong, at the field it is about; at the payload if the form has no such field.

    `called` says how a form calls what others call differently.
    """
    if isinstance(error, UnknownType):
        return {"type": str(error)}
    found = error if isinstance(error, Refusal) else Refusal.of(error)
    name = (found.field or "").removeprefix("body.")
    field = called.get(name, name)
    return {field if field in fields else "payload": found.detail.removeprefix(f"{found.field}: ")}
