"""An error as it is stored. Every text passes the redaction gate: there is no other way in."""

import hashlib
import os
import re
import traceback
from itertools import islice
from pathlib import PurePath

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.model.dependency import Edge, Outcome
from penstock.model.errors import PenstockError
from penstock.model.job import Job
from penstock.model.redact import redact
from penstock.model.retry import Budget, ErrorClass
from penstock.model.states import Status
from penstock.model.wording import counted

MESSAGE_LIMIT = 4_000
NAME_LIMIT = 200
STACK_LIMIT = 16_000
STACK_OF_PROCESS = "__penstock_stack__"
"""Where an exception has the traceback that it had in the process of its job."""
REDACTABLE = 60_000
GIST_LIMIT = 120
PLACES = 3
_VARYING = re.compile(
    r"""(?<!\w)(?:'[^']*'|"[^"]*"|`[^`]*`)(?!\w)"""  # what is quoted
    r"|[\w.:@/+-]*\d[\w.:@/+-]*"  # what has a digit in it: numbers, ids, times, paths
)
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = f"{PurePath(os.__file__).parent}{os.sep}"
_PARTS = (
    *("app", "cli", "django", "model", "operate"),
    *("remote", "server", "store", "testing", "worker"),
)
_MACHINERY = tuple(f"{PurePath(__file__).parents[1] / part}{os.sep}" for part in _PARTS)
_FRAME = re.compile(r'  File "(?P<file>[^"]*)", line \d+')
# A stack may come from another machine.
_OUR_FRAME = re.compile(
    rf"[/\\](?:{'|'.join(_INSTALLED)}|src)[/\\]penstock[/\\](?:{'|'.join(_PARTS)})[/\\]"
)


class Failure(Struct, frozen=True):
    """What went wrong, redacted and bounded: class, exception name, message, stack."""

    error_class: ErrorClass
    code: str
    message: str
    stack: str = ""
    fingerprint: str = ""
    budget: Budget | None = None
    given_up: str | None = None

    @classmethod
    def of(cls, error: BaseException, error_class: ErrorClass) -> "Failure":
        """Capture an exception."""
        carried = getattr(error, STACK_OF_PROCESS, None)
        stack = carried or stack_of(error)
        code, words = redact(type(error).__name__), redact(str(error))
        place = _places(error) or [gist(words or code)]
        return cls(
            error_class=error_class,
            code=code,
            message=(f"{code}: {words}" if words else code)[:MESSAGE_LIMIT],
            stack=_last(redact(_last(stack, REDACTABLE)), STACK_LIMIT),
            fingerprint=redact("|".join((error_class, type(error).__name__, *place))),
        )

    @classmethod
    def because(cls, error_class: ErrorClass, code: str, message: str) -> "Failure":
        """Describe a failure no exception carries: expiry, a dead process, a handler's word."""
        told = redact(message)[:MESSAGE_LIMIT]
        return cls(error_class, code, told, "", f"{error_class}|{code}|{gist(told)}")

    @property
    def details(self) -> str:
        """What a job keeps of it beside the message, as its `error_details` document."""
        kept: dict[str, object] = {
            "class": self.error_class,
            "code": self.code,
            "stack": self.stack,
            "fingerprint": self.fingerprint,
        }
        if self.budget is not None:
            kept["budget"] = self.budget
        if self.given_up is not None:
            kept["given_up"] = self.given_up
        return encode(kept).decode()


class Judged(Struct, frozen=True):
    """What `error_details` tell of the retries of a job."""

    budget: Budget | None = None
    given_up: str | None = None


def judged(error_details: str | None) -> Judged:
    """Read what was decided when a job last failed."""
    return Judged() if error_details is None else decode(error_details, type=Judged)


def fell_with_parent(error_details: str | None) -> bool:
    """Whether a job ended only because of a parent, as its `error_details` tell."""
    return error_details is not None and decode(error_details).get("code") == "ParentFailed"


def attempt_of(job: Job) -> int:
    """Which attempt a job is at: those that were spent, and the one that runs."""
    running = job.status is Status.IN_PROGRESS and job.started_at is not None
    return job.attempts + running


def attempts_allowed(job: Job) -> int | None:
    """How often a job may be tried, as far as one can know before an error has a class."""
    budget = judged(job.error_details).budget
    retries = job.max_retries if budget is None else budget.retries
    return None if retries is None else retries + 1


def bound_by(job: Job) -> str | None:
    """What bounds, or ended, the retries of a job: `bounded by max_retries of its type or call`."""
    found = judged(job.error_details)
    if found.given_up is not None and job.status is Status.DEAD_LETTER:
        return found.given_up
    if found.budget is not None:
        return f"bounded by {found.budget.source}"
    depends = job.max_retries is None and not job.status.terminal
    return "how many it may have depends on the error" if depends else None


def gist(message: str) -> str:
    """A message without what differs from job to job: `gist("order A-7 is late")`."""
    return " ".join(_VARYING.sub("#", message).split())[:GIST_LIMIT]


def group_id(job_type: str, fingerprint: str) -> str:
    """The short id of the dead letters of one type that died of one error."""
    return hashlib.sha256(f"{job_type}\n{fingerprint}".encode()).hexdigest()[:8]


def stack_of(error: BaseException) -> str:
    """Its traceback; of a refusal of ours that no other code led to, the sentence alone."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, PenstockError) and all(_is_ours(frame.filename) for frame in frames):
        return "".join(traceback.format_exception_only(error))
    return "".join(traceback.format_exception(error))


def folded(stack: str) -> str:
    """A traceback with our own frames, all but an innermost one, folded into a line."""
    lines: list[str] = []
    ours: list[list[str]] = []
    for frame in _frames(stack):
        found = _FRAME.match(frame[0])
        if found is not None and _is_ours(found["file"]):
            ours.append(frame)
            continue
        if ours and found is None:  # what follows the innermost frame: the error itself
            lines += [*_fold(ours[:-1]), *ours[-1]]
        else:
            lines += _fold(ours)
        ours = []
        lines += frame
    return "".join(lines + _fold(ours))


def _is_ours(filename: str) -> bool:
    return filename.startswith(_MACHINERY) or _OUR_FRAME.search(filename) is not None


def _frames(stack: str) -> list[list[str]]:
    """The lines of a traceback, those of a frame together and every other by itself."""
    found: list[list[str]] = []
    for line in stack.splitlines(keepends=True):
        inside = line.startswith("    ") and found and _FRAME.match(found[-1][0])
        if inside:
            found[-1].append(line)
        else:
            found.append([line])
    return found


def _fold(frames: list[list[str]]) -> list[str]:
    return [f"  … {counted(len(frames), 'frame')} of penstock\n"] if frames else []


def _last(stack: str, limit: int) -> str:
    """The innermost frames that fit; cut between lines, so that no secret loses its beginning."""
    return stack if len(stack) <= limit else stack[-limit:].partition("\n")[2]


def _places(error: BaseException) -> list[str]:
    """The innermost frames of the application, without line numbers.

    An edit elsewhere keeps the group, and so does a new version of a library or of this one.
    """
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_MACHINERY)]
    own = [frame for frame in outside if is_application(frame.filename)]
    places = (f"{PurePath(f.filename).name}:{f.name}" for f in reversed(own or outside))
    # Each once: neither the depth of a recursion nor raising an old exception anew splits a group.
    return list(islice(dict.fromkeys(places), PLACES))[::-1]


def is_application(filename: str) -> bool:
    """Whether a file is neither ours nor a library's."""
    return not (filename.startswith(_MACHINERY) or is_library(filename))


def is_library(filename: str) -> bool:
    """Whether a file belongs to Python itself or was installed."""
    parts = PurePath(filename).parts
    return filename.startswith((_STANDARD_LIBRARY, "<frozen")) or any(
        name in parts for name in _INSTALLED
    )


EXPIRED = Failure.because(ErrorClass.TIMEOUT, "Expired", "The job expired before it could run.")
LEASE_LOST = Failure.because(
    ErrorClass.POISON, "LeaseLost", "The worker stopped renewing its lease while the job ran."
)


def orphaned(edge: Edge, outcome: Outcome, parent: Status, *, foreign: bool = False) -> Failure:
    """The failure of a child whose edge was not satisfied; a requeue looks at its code.

    Nothing is told of a `foreign` parent: whoever may see the child may not see that one.
    """
    named = "a job of another tenant" if foreign else f"job {edge.parent_id}"
    if outcome is Outcome.NOT_MET:
        code = "ConditionNotMet"
        told = f"The result of {named} does not meet its condition: {edge.condition}"
    else:
        code = "ParentFailed"
        how = "did not complete" if foreign else f"ended as {parent}"
        told = f"{named[0].upper()}{named[1:]}, which it was to run after, {how}."
    return Failure.because(ErrorClass.UNKNOWN, code, told)
