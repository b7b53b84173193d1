"""What somebody asks a store for, checked here so that every store says the same about it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.model.errors import InvalidOption
from penstock.model.options import check_text
from penstock.model.states import Status
from penstock.store.contract import JobFilter

MOST_ROWS = 1_000_000_000


def check_words(option: str, words: object) -> None:
    """Refuse a remark that is no text; what no store can hold in it is replaced later."""
    if words is not None and not isinstance(words, str):
        raise InvalidOption(option, words, "a text")


def check_rows(limit: object) -> int:
    """Refuse what is no number of rows to ask for; the number itself."""
    if isinstance(limit, int) and not isinstance(limit, bool) and 0 <= limit <= MOST_ROWS:
        return limit
    raise InvalidOption("limit", limit, f"a whole number from 0 to {MOST_ROWS:,}")


def check_patience(timeout: object) -> float | None:
    """Refuse what says not how long to wait for an end; the number of seconds itself."""
    if timeout is None:
        return None
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and abs(timeout) < 1e10:
        return timeout
    raise InvalidOption("timeout", timeout, "a number of seconds, or None to wait for the end")


_TEXTS = frozenset(
    {"type", "queue", "category", "tenant_id", "tag", "parent_job_id", "schedule_id"}
    | {"workspace_id", "created_by", "lease_owner", "text", "before"}
)


def job_filter(where: Mapping[str, Any]) -> JobFilter:
    """The filter that keyword arguments describe: `status="failed", type="resize"`."""
    known = ("status", *JobFilter.__struct_fields__)
    for name, value in where.items():
        if name not in known:
            raise InvalidOption("filter", name, f"one of: {', '.join(known)}")
        if name == "limit":
            check_rows(value)
        elif value is not None and name in _TEXTS:
            check_text(name, value)
    try:
        return msgspec.convert(_with_statuses(where), JobFilter)
    except msgspec.ValidationError as error:
        raise InvalidOption("filter", where, f"made of valid values ({error})") from error


def expected(text: str) -> tuple[str, str]:
    """Where in a payload which value is to be: `user.id=7`; what is no JSON is a text."""
    path, _, value = text.partition("=")
    try:
        wanted: Any = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        wanted = value
    return path, msgspec.json.encode(wanted).decode()


def _with_statuses(where: Mapping[str, Any]) -> dict[str, Any]:
    """One status is a list of one."""
    wanted = dict(where)
    status = wanted.pop("status", None)
    if status is None:
        return wanted
    if wanted.get("statuses"):
        raise InvalidOption("statuses", wanted["statuses"], "left out where there is a status")
    if status not in list(Status):
        raise InvalidOption("status", status, f"one of: {', '.join(Status)}")
    return {**wanted, "statuses": [status]}
