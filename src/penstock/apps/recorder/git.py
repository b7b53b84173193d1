"""The commits of a session: found where its repository is, and kept as events.

A hook tells at which commit the repository stands. When that changes, a job asks git what was
committed since; each commit becomes an event of the session, once.
"""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.app.blueprint import Blueprint
from penstock.app.context import Context
from penstock.apps.recorder.captured import QUEUE, Captured, digest
from penstock.apps.recorder.conversations import id_of
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.home import real_path
from penstock.apps.recorder.records import Commit
from penstock.apps.recorder.writing import write
from penstock.events.consumer import Applying, Role, consumer_of
from penstock.events.event import Event, Session
from penstock.model.errors import QueueFull

if TYPE_CHECKING:
    from penstock.apps.recorder.capture import Clean

NAME = "recorder.commits"
MOST = 50
MOST_FILES = 200
LONGEST = 200
SECONDS = 10.0

_blueprint = Blueprint()


class Head(Struct, frozen=True):
    """Where the repository of a session stands, and since when the session is known."""

    commit: str
    since: int


class Look(Struct, frozen=True, kw_only=True):
    """What to ask git for: what came between two commits, and was committed in a session."""

    session: Session
    folder: str
    branch: str
    before: str
    after: str
    since: int


class Looked(Struct, frozen=True):
    """How many commits were found; or why nobody looked."""

    commits: int = 0
    reason: str = ""


def moved(known: Head | None, event: Event | Captured) -> tuple[Head | None, Look | None]:
    """Where the repository of a session stands after an event, and what to look for if it moved."""
    told = event.metadata
    commit, folder = told.get("git_head"), told.get("cwd") or event.payload.get("cwd")
    if not isinstance(commit, str) or not isinstance(folder, str):
        return known, None
    if known is None:
        return Head(commit, event.timestamp), None
    if known.commit == commit:
        return known, None
    look = Look(
        session=Session(event.tenant_id, event.platform, event.session_id),
        folder=folder,
        branch=str(told.get("git_branch", "")),
        before=known.commit,
        after=commit,
        since=known.since,
    )
    return Head(commit, known.since), look


@_blueprint.job(queue=QUEUE, priority=7, max_retries=2, timeout=60)
async def read_commits(context: Context, look: Look) -> Looked:
    """Keep what was committed in a session, if its repository is on this machine."""
    clean = cleaner_of(context.app, look.session.session_id)
    commits = await asyncio.to_thread(commits_of, look, clean)
    if commits is None:
        return Looked(reason="its folder is not on this machine")
    await write(context.app, commits)
    return Looked(len(commits))


class Commits:
    """Has git asked whenever the repository of a session has moved."""

    def apply(self, tx: Applying, events: Sequence[Event]) -> None:
        """Enqueue a job for each move; where a session stands is kept."""
        heads: dict[Session, Head | None] = {}
        for event in events:
            session = event.session
            if session not in heads:
                text = tx.recorder.value("state", (id_of(session), NAME))
                heads[session] = None if text is None else _decode(text)
            known = heads[session]
            heads[session], look = moved(known, event)
            if look is not None:
                try:
                    call = read_commits.options(tenant=session.tenant_id).new(look)
                    tx.enqueue(call, event=event)
                except QueueFull:
                    heads[session] = known  # the next event tells of it again
        for session, head in heads.items():
            if head is not None:
                row = (id_of(session), NAME, session.tenant_id, _encode(head).decode())
                tx.recorder.run("keep_state", row)

    def reset(self, tx: Any, session: Session) -> None:
        """Forget where the repository of a session stands."""
        tx.recorder.run("drop_state", (id_of(session), NAME))


_decode = msgspec.json.Decoder(Head).decode
_encode = msgspec.json.Encoder().encode

consumer = consumer_of(
    Commits,
    name=NAME,
    role=Role.OPTIONAL,
    types=("tool_use", "assistant_response", "completion", "session_start", "session_end"),
)


def commits_of(look: Look, clean: "Clean") -> list[Captured] | None:
    """The commits of a session, sanitised, as events; None if the folder is not here."""
    folder = real_path(look.folder)
    if not os.path.isdir(folder):
        return None
    return [_captured(look, commit, clean) for commit in commits_between(folder, look)]


def commits_between(folder: str, look: Look) -> list[Commit]:
    """What git tells of the commits after one and up to another, the oldest first."""
    if not {*look.before, *look.after} <= {*"0123456789abcdef"}:
        return []
    begin = os.urandom(8).hex()  # what no subject and no file can be called on purpose
    asked = [
        *("git", "-C", folder, *_HARMLESS, "log", f"--max-count={MOST}", "--no-show-signature"),
        *("--no-ext-diff", "--no-textconv", "--name-only", "-z"),
        *(f"--format={begin}%H%x00%ct%x00%s%x00", look.after, f"^{look.before}", "--"),
    ]
    try:
        answered = subprocess.run(
            asked,
            env={"PATH": os.environ.get("PATH", os.defpath), **_ALONE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = answered.stdout.decode("utf-8", "replace").split(begin)[1:]
    commits = [_commit(each, look.branch) for each in reversed(found)]
    return [commit for commit in commits if commit.at >= look.since - 1000]


# Settings of a repository may name programs: none of them is to run.
_HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false", "-c", "diff.external=", "-c", "core.pager=cat"),
)
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}


def _commit(told: str, branch: str) -> Commit:
    hash_, at, subject, files = told.split("\0", 3)
    names = [name.strip("\n") for name in files.split("\0")]
    return Commit(
        hash=hash_,
        branch=branch,
        at=1000 * int(at),
        files=[name for name in names if name][:MOST_FILES],
        subject=subject[:LONGEST],
    )


def _captured(look: Look, commit: Commit, clean: "Clean") -> Captured:
    session = look.session
    payload, redactions = clean(
        {
            "hash": commit.hash,
            "branch": commit.branch,
            "files": commit.files,
            "subject": commit.subject,
        }
    )
    return Captured(
        platform=session.platform,
        session_id=session.session_id,
        hook_type="git",
        event_type="git_commit",
        event_id=digest("git_commit", *session.key, commit.hash),
        timestamp=commit.at,
        payload={**payload, "hash": commit.hash},
        source="git",
        tenant_id=session.tenant_id,
        redactions=redactions,
    )
