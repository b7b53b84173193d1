"""The options of a job: defaults of its type, and what one enqueue overrides."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from penstock.app.after import After, Wait, edges_of
from penstock.app.lookups import check_text
from penstock.model.clock import EARLIEST, LATEST, milliseconds
from penstock.model.dependency import Edge
from penstock.model.errors import InvalidOption
from penstock.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, MAX_TAGS, MAX_TEXT, KeyScope, NewJob

if TYPE_CHECKING:
    from penstock.app.after import Parent

MAX_METADATA = 65_536
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,127}")


class OptionFields(TypedDict, total=False):
    """The options as keyword arguments; `JobOptions` says what they mean."""

    queue: str
    priority: int
    max_retries: int | None
    timeout: float
    retry_delay: float | None
    backoff: float | None
    delay: float
    at: datetime | None
    expires_in: float | None
    key: str | int | None
    key_scope: str
    key_window: float | None
    category: str
    tenant: str | int
    workspace: str | int | None
    created_by: str | int | None
    limit_key: str | int | None
    order_key: str | int | None
    tags: Sequence[str | int]
    metadata: Mapping[str, Any] | None


class CallFields(OptionFields, total=False):
    """The options of one call; what it runs after is no matter of its type."""

    after: "Parent | After | Sequence[Parent | After] | None"


class AwaitingFields(OptionFields, total=False):
    """The same where parents' results may fill arguments, so that not all have to be given."""

    after: "Parent | Wait | Sequence[Parent | Wait] | None"


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a job is to be run; durations are in seconds."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    max_retries: int | None = None
    timeout: float = 300
    retry_delay: float | None = None
    backoff: float | None = None
    delay: float = 0
    at: datetime | None = None
    expires_in: float | None = None
    key: str | None = None
    key_scope: str = KeyScope.UNTIL_DONE
    key_window: float | None = None
    category: str = "general"
    tenant: str = ""
    workspace: str | None = None
    created_by: str | None = None
    limit_key: str | None = None
    order_key: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    after: tuple[Edge, ...] = ()

    def with_(self, **changes: Unpack[AwaitingFields]) -> "JobOptions":
        """A copy with other values, checked."""
        unknown = changes.keys() - set(self.__struct_fields__)
        if unknown:
            known = ", ".join(self.__struct_fields__)
            raise InvalidOption(sorted(unknown)[0], "given", f"one of: {known}")
        plain = {name: _plain(name, value) for name, value in changes.items()}
        changed = msgspec.structs.replace(self, **plain)
        changed.check()
        return changed

    def check(self) -> None:
        """Refuse what no store would take, in one sentence each."""
        _whole("priority", self.priority, 1, 10)
        if self.max_retries is not None:
            _whole("max_retries", self.max_retries, 0, 1_000)
        check_seconds("timeout", self.timeout)
        for name in ("queue", "category"):
            check_name(name, getattr(self, name))
        _not_negative("delay", self.delay, required=True)
        for name in ("retry_delay", "expires_in", "key_window"):
            _not_negative(name, getattr(self, name))
        _check_key(self)
        _check_texts(self)
        _check_backoff(self.backoff)
        if self.at is not None:
            _check_time(self.at)
        if self.metadata is not None:
            _check_metadata(self.metadata)
        tags: object = self.tags
        if not isinstance(tags, tuple) or len(tags) > MAX_TAGS or not _are_words(tags):
            expected = f"at most {MAX_TAGS} words of at most {MAX_TEXT} characters"
            raise InvalidOption("tags", self.tags, expected)
        for tag in self.tags:
            check_text("tags", tag)

    def new_job(self, job_id: str, type_: str, payload: str) -> NewJob:
        """The job these options describe."""
        return NewJob(
            id=job_id,
            type=type_,
            payload=payload,
            queue=self.queue,
            category=self.category,
            priority=self.priority,
            max_retries=self.max_retries,
            retry_delay_ms=_ms(self.retry_delay),
            backoff_multiplier=self.backoff,
            timeout_ms=max(1, int(self.timeout * 1000)),
            delay_ms=int(self.delay * 1000),
            scheduled_at=_at(self.at),
            expires_in_ms=_ms(self.expires_in),
            key=self.key,
            key_scope=self._scope(),
            key_window_ms=_ms(self.key_window),
            tenant_id=self.tenant,
            workspace_id=self.workspace,
            created_by=self.created_by,
            limit_key=self.limit_key,
            order_key=self.order_key,
            tags=self.tags,
            metadata=None if self.metadata is None else msgspec.json.encode(self.metadata).decode(),
            after=self.after,
        )

    def _scope(self) -> KeyScope | None:
        if self.key is None:
            return None
        return KeyScope.WINDOW if self.key_window is not None else KeyScope(self.key_scope)


_IDENTIFIERS = frozenset({"key", "limit_key", "order_key", "tenant", "workspace", "created_by"})
_LONGEST_NUMBER = 10**MAX_TEXT


def _plain(name: str, value: Any) -> Any:
    """Return the value as stores take it: text that is exactly `str`, edges, a tuple of tags.

    A whole number is taken as an identifier, too: it is what many rows are known by.
    """
    if name in _IDENTIFIERS:
        return _identifier(value)
    if name == "tags" and isinstance(value, tuple | list):
        return tuple(map(_identifier, value))
    if name == "after":
        return edges_of(value)
    if isinstance(value, str):
        return str.__str__(value)
    return value.value if isinstance(value, Enum) else value


def _identifier(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(int(value)) if is_number and abs(value) < _LONGEST_NUMBER else value


def _check_key(options: JobOptions) -> None:
    if options.key_scope not in list(KeyScope):
        raise InvalidOption("key_scope", options.key_scope, f"one of: {', '.join(KeyScope)}")
    if options.key_scope == KeyScope.WINDOW and options.key_window is None:
        raise InvalidOption("key_window", None, "a number of seconds when key_scope is 'window'")


def _check_texts(options: JobOptions) -> None:
    for name in ("key", "limit_key", "order_key"):
        _check_text(name, getattr(options, name))
    for name in ("tenant", "workspace", "created_by"):
        value: object = getattr(options, name)
        if name == "tenant" and value is None:
            raise InvalidOption(name, value, "a text, empty for none")
        if value != "":
            _check_text(name, value)


def _check_text(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise InvalidOption(name, value, f"a text of 1 to {MAX_TEXT} characters")
    check_text(name, value)


def _check_backoff(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= 10:
        raise InvalidOption("backoff", value, "a multiplier from 1 to 10")


def _are_words(tags: Sequence[object]) -> bool:
    return all(isinstance(tag, str) and len(tag) <= MAX_TEXT for tag in tags)


def _check_time(at: Any) -> None:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidOption("at", at, "a time with its zone, such as datetime.now(UTC)")
    if not EARLIEST <= milliseconds(at) <= LATEST:
        raise InvalidOption("at", at, "a time within the years 1 to 9999 in UTC")


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, Mapping):
        raise InvalidOption("metadata", metadata, "a mapping")
    try:
        size = len(msgspec.json.encode(metadata))
    except (TypeError, ValueError) as error:
        raise InvalidOption("metadata", metadata, f"something JSON can hold ({error})") from error
    if size > MAX_METADATA:
        raise InvalidOption(
            "metadata", f"{size:,} bytes", f"at most {MAX_METADATA:,} bytes of JSON"
        )


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        meaning = " (1 is most urgent)" if name == "priority" else ""
        raise InvalidOption(name, value, f"a whole number from {low} to {high}{meaning}")


def check_seconds(name: str, value: Any) -> None:
    """Refuse a duration that is not above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e10:
        raise InvalidOption(name, value, "a number of seconds above 0")


def check_wait(value: Any) -> Any:
    """Refuse what says not for how long to wait; the value itself."""
    if value is not None and (not isinstance(value, int | float) or not 0 <= value < 1e10):
        raise InvalidOption("wait", value, "a number of seconds, or False not to wait")
    return value


def _not_negative(name: str, value: Any, *, required: bool = False) -> None:
    if value is None and not required:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e10:
        raise InvalidOption(name, value, "a number of seconds, 0 or more")


def check_name(name: str, value: Any) -> None:
    """Refuse a name that a URL, a log line or a shell would stumble over."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidOption(
            name, value, "a name of up to 128 letters, digits and _ . : @ / -, starting with one"
        )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)


def _at(moment: datetime | None) -> int | None:
    return None if moment is None else milliseconds(moment)
