"""What a page's URL asks for: the API's own words, with what is wrong kept beside its field."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ValidationError

Q = TypeVar("Q", bound=BaseModel)

LISTS = frozenset({"status", "payload"})
TIMES = frozenset({"since", "until"})
PAGING = frozenset({"before", "limit"})


class Asked(Struct, Generic[Q], frozen=True):
    """What was given, as text, and the question made of it; none if something is wrong."""

    given: dict[str, Any]
    query: Q | None
    problems: dict[str, str]

    @property
    def filters(self) -> dict[str, Any]:
        """What narrows the list, without the place in it."""
        return {name: value for name, value in self.given.items() if name not in PAGING}

    @property
    def narrowed(self) -> bool:
        """Whether it is about more than a status."""
        return bool(self.filters.keys() - {"status"})


def asked(question: type[Q], items: Iterable[tuple[str, str]]) -> Asked[Q]:
    """Read the fields of a URL or a form; empty and unknown ones say nothing."""
    given: dict[str, Any] = {}
    for name, value in items:
        text = value.strip()
        if not text or name not in question.model_fields:
            continue
        if name in LISTS:
            given.setdefault(name, []).append(text)
        else:
            given[name] = text
    try:
        read = {name: _read(name, value) for name, value in given.items()}
        return Asked(given, question.model_validate(read), {})
    except ValidationError as error:
        problems = {str(each["loc"][0]): each["msg"] for each in error.errors()}
        return Asked(given, None, problems)


def _read(name: str, value: Any) -> Any:
    """A browser's time has no zone; pages speak UTC."""
    if name not in TIMES:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
