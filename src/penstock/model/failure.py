"""An error as it is stored. Every text passes the redaction gate: there is no other way in."""

import re
import traceback
from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from penstock.model.redact import redact
from penstock.model.retry import ErrorClass

MESSAGE_LIMIT = 4_000
STACK_LIMIT = 16_000
REDACTABLE = 60_000
GIST_LIMIT = 120
_NUMBERS = re.compile(r"\d+")


class Failure(Struct, frozen=True):
    """What went wrong, redacted and bounded: class, exception name, message, stack."""

    error_class: ErrorClass
    code: str
    message: str
    stack: str = ""
    fingerprint: str = ""

    @classmethod
    def of(cls, error: BaseException, error_class: ErrorClass) -> "Failure":
        """Capture an exception."""
        stack = "".join(traceback.format_exception(error))
        return cls(
            error_class=error_class,
            code=redact(type(error).__name__),
            message=redact(str(error) or type(error).__name__)[:MESSAGE_LIMIT],
            stack=_last(redact(_last(stack, REDACTABLE)), STACK_LIMIT),
            fingerprint=redact("|".join((error_class, type(error).__name__, *_places(error)))),
        )

    @classmethod
    def because(cls, error_class: ErrorClass, code: str, message: str) -> "Failure":
        """Describe a failure no exception carries: expiry, a dead process, a handler's word."""
        told = redact(message)[:MESSAGE_LIMIT]
        gist = _NUMBERS.sub("#", told)[:GIST_LIMIT]
        return cls(error_class, code, told, "", f"{error_class}|{code}|{gist}")


def _last(stack: str, limit: int) -> str:
    """The innermost frames that fit; cut between lines, so that no secret loses its beginning."""
    return stack if len(stack) <= limit else stack[-limit:].partition("\n")[2]


def _places(error: BaseException) -> Iterator[str]:
    """The last three frames without line numbers, so an edit elsewhere keeps the group."""
    for frame in traceback.extract_tb(error.__traceback__)[-3:]:
        yield f"{PurePath(frame.filename).name}:{frame.name}"
