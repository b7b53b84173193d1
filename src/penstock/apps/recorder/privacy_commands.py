"""`penstock recorder export`, `delete` and `retention`: what belongs to people, in their hands."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from penstock.apps.recorder.privacy import Choice, Chosen, Privacy, Proof, Rule, line_of
from penstock.extension import Shown
from penstock.model.clock import from_iso, iso
from penstock.model.documents import document
from penstock.model.errors import InvalidOption
from penstock.model.wording import counted
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SessionOption = Annotated[str | None, "--session", "This session."]
Project = Annotated[str | None, "Sessions of this project."]
Since = Annotated[str | None, "Last seen at this time or later: 2026-11-15T03:28Z."]
Until = Annotated[str | None, "Last seen before this time."]


async def export(
    app: "Penstock",
    actor: str,
    session: SessionOption = None,
    project: Project = None,
    since: Since = None,
    until: Until = None,
    out: Annotated[Path | None, "Write to this file, which only you can read."] = None,
) -> AsyncIterator[Shown]:
    """Write all that there is of sessions, one JSON document a line, with a hash at the end."""
    privacy = Privacy(app, Operator(app, actor).actor)
    documents = privacy.export(_choice(session, project, since, until))
    if out is None:
        async for each in documents:
            yield Shown(line_of(each).decode().rstrip("\n"), each)
        return
    manifest: dict[str, Any] = {}
    with _private(out) as file:
        async for each in documents:
            file.write(line_of(each))
            manifest = each
    counts = ", ".join(counted(n, kind) for kind, n in manifest["counts"].items())
    yield Shown(f"{counts or 'Nothing'} in {out}, SHA-256 {manifest['sha256']}.", manifest)


async def delete(
    app: "Penstock",
    actor: str,
    session: SessionOption = None,
    project: Project = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, "--yes", "Delete; without it, only say what would go."] = False,
    leave_published: Annotated[bool, "Delete also what was published; copies stay."] = False,
) -> Shown:
    """Delete sessions with all that was derived from them, and prove that nothing is left."""
    privacy = Privacy(app, Operator(app, actor).actor)
    chosen = [each async for each in privacy.sessions(_choice(session, project, since, until))]
    return await _deleted(privacy, chosen, yes=yes, leave_published=leave_published)


async def retention(
    app: "Penstock",
    actor: str,
    days: Annotated[int | None, "Keep sessions so many days after they were last seen."] = None,
    forever: Annotated[bool, "Keep them for ever."] = False,
    drop: Annotated[bool, "Drop the rule."] = False,
    project: Project = None,
    session: SessionOption = None,
    now: Annotated[bool, "--now", "Delete at once what is due; else within the hour."] = False,
) -> Shown:
    """Show or say for how long sessions are kept: all, those of a project, or one."""
    privacy = Privacy(app, Operator(app, actor).actor)
    if sum((days is not None, forever, drop)) > 1:
        raise InvalidOption("retention", "several", "one of --days, --forever and --drop")
    if drop:
        await privacy.forget_rule(project=project, session=session)
    elif days is not None or forever:
        await privacy.keep(days, project=project, session=session)
    if now:
        due = [each async for each in privacy.overdue()]
        return await _deleted(privacy, due, yes=True, leave_published=True)
    rules = await privacy.rules()
    people: Any = [_rule_row(rule) for rule in rules] or "Sessions are kept for ever."
    return Shown(people, [document(rule) for rule in rules])


async def _deleted(
    privacy: Privacy, chosen: list[Chosen], *, yes: bool, leave_published: bool
) -> Shown:
    if not chosen:
        return Shown("No session is meant.", [])
    if not yes:
        rows = [
            {"session": each.id[:12], "title": each.title, "project": each.project}
            for each in chosen
        ]
        told = f"{counted(len(chosen), 'session')} would go; say --yes to delete."
        return Shown((rows, told), [document(each) for each in chosen])
    proofs = [await privacy.delete(each, leave_published=leave_published) for each in chosen]
    failed = [proof for proof in proofs if not proof.complete]
    told = f"{counted(len(proofs), 'session')} deleted; every table was asked and holds nothing."
    return Shown(
        ([_proof_row(proof) for proof in proofs], *([] if failed else [told])),
        [document(proof) for proof in proofs],
        f"Something is left of {counted(len(failed), 'session')}; delete again." if failed else "",
    )


def _private(path: Path) -> BinaryIO:
    """A new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _choice(
    session: str | None, project: str | None, since: str | None, until: str | None
) -> Choice:
    return Choice(
        session=session,
        project=project,
        since=None if since is None else from_iso(since),
        until=None if until is None else from_iso(until),
    )


def _rule_row(rule: Rule) -> dict[str, Any]:
    return {
        "sessions": rule.scope if not rule.name else f"{rule.scope} {rule.name}",
        "kept": "for ever" if rule.days is None else counted(rule.days, "day"),
        "said by": rule.set_by,
        "on": iso(rule.set_at),
    }


def _proof_row(proof: Proof) -> dict[str, Any]:
    return {
        "session": proof.session[:16],
        "left": sum(proof.left.values()),
        "erased": ", ".join(f"{count:,} {name}" for name, count in proof.erased.items()),
    }
