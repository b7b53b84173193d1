"""Dead letters in groups: what died of the same error, a few tried again, the rest released."""

from typing import Annotated

from fastapi import Query
from msgspec import Struct
from starlette.responses import Response

from penstock.client.dead import MOST_CANARIES
from penstock.model.errors import InvalidOption
from penstock.model.ids import is_id
from penstock.model.job import Job
from penstock.server.access.scopes import Scope
from penstock.server.dashboard.confirm import Question, asked_first
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import Operating, Reading, Visit
from penstock.server.problems import Refusal
from penstock.store.contract import DeadGroup, DeadLetter, Resolution

router = page_router()

GROUPS_SHOWN = 200
LETTERS_SHOWN = 50
CANARIES_SHOWN = 50
MAX_NOTES = 10_000
MAX_REFUSED_TOLD = 3

Word = Annotated[str, Query(max_length=255)]


class Letters(Struct, frozen=True):
    """A page of dead letters, which of them were asked for, and where the next page begins."""

    shown: list[DeadLetter]
    filters: dict[str, str]
    following: str | None


@router.get("/dead")
async def groups(
    visit: Reading,
    type: Word = "",  # noqa: A002 - the field's name
    settled: bool = False,
) -> Response:
    """The groups, the largest open one first."""
    found = await visit.operator.dead.groups(type or None, settled=settled, limit=GROUPS_SHOWN + 1)
    return await visit.page(
        "dead.html",
        "dead",
        groups=found[:GROUPS_SHOWN],
        more=len(found) > GROUPS_SHOWN,
        most=max((group.count for group in found), default=0),
        unresolved=sum(group.unresolved for group in found),
        type=type,
        settled=settled,
    )


@router.get("/dead/letters")
async def all_letters(
    visit: Reading,
    type: Word = "",  # noqa: A002 - the field's name
    tenant: Word = "",
    resolution: Word = "",
    before: Word = "",
) -> Response:
    """A page of dead letters of all groups, newest first."""
    filters = {"type": type, "tenant": tenant, "resolution": resolution}
    return await visit.page(
        "letters.html",
        "dead",
        letters=await letters_of(visit, filters, before),
        resolutions=list(Resolution),
    )


@router.get("/dead/groups/{group}")
async def group_page(
    visit: Reading, group: str, resolution: Word = "", before: Word = ""
) -> Response:
    """One group: its letters, how its canaries fare, and what can be done with it."""
    dead = visit.operator.dead
    found = await dead.group(group)
    canaries = await dead.canaries(found.id)
    tried = [*canaries.failed, *canaries.unfinished, *canaries.completed]
    return await visit.page(
        "group.html",
        "dead",
        group=found,
        letters=await letters_of(visit, {"group": found.id, "resolution": resolution}, before),
        canaries=canaries,
        tried=await _jobs(visit, tried[:CANARIES_SHOWN]),
        unproven=bool(canaries.failed or canaries.unfinished),
        resolutions=list(Resolution),
        most_canaries=MOST_CANARIES,
        may_operate=visit.caller.may(Scope.OPERATE),
    )


@router.post("/dead/groups/{group}/replay")
async def replay(visit: Operating, group: str) -> Response:
    """Run the newest few again, to see whether the cause is gone."""
    found = await visit.operator.dead.group(group)
    answer = await visit.operator.dead.replay(found.id, _number(visit, "canary", 5))
    return _requeued(visit, found, len(answer.handles), answer.refused, "run as canaries")


@router.post("/dead/groups/{group}/release")
async def release(visit: Operating, group: str) -> Response:
    """Run the rest again at a rate, the oldest first."""
    found = await visit.operator.dead.group(group)
    rate = visit.form.get("rate") or None
    answer = await visit.operator.dead.release(found.id, rate, force=bool(visit.form.get("force")))
    return _requeued(visit, found, len(answer.done), answer.refused, "released")


@router.post("/dead/groups/{group}/resolve")
async def resolve(visit: Operating, group: str) -> Response:
    """Record where somebody stands with the open ones."""
    found = await visit.operator.dead.group(group)
    ids = await visit.operator.dead.resolve(found.id, said(visit), notes=notes(visit))
    return visit.redirect(f"dead/groups/{found.id}", f"{_letters(len(ids))} recorded.")


@router.get("/dead/groups/{group}/purge")
async def ask_to_purge(visit: Operating, group: str) -> Response:
    """Ask before a group's open letters are deleted."""
    found = await visit.operator.dead.group(group)
    place = f"dead/groups/{found.id}"
    question = Question(
        title=f"Delete {_letters(found.unresolved)} for good?",
        text="They are deleted with their jobs, and nothing brings them back.",
        label=f"Delete {_letters(found.unresolved)}",
        action=f"{place}/purge",
        back=place,
        facts={"Group": found.id, "Type": found.type, "Error": found.error or "–"},
    )
    return await asked_first(visit, "dead", question)


@router.post("/dead/groups/{group}/purge")
async def purge(visit: Operating, group: str) -> Response:
    """Delete a group's open letters, with their jobs."""
    found = await visit.operator.dead.group(group)
    purged = await visit.operator.dead.purge(found.id)
    return visit.redirect("dead", f"{_letters(purged)} deleted for good.")


async def letters_of(visit: Visit, filters: dict[str, str], before: str) -> Letters:
    """The letters that filters find, a page of them; empty filters say nothing."""
    given = {name: value for name, value in filters.items() if value}
    if before and not is_id(before):
        raise Refusal(422, "before: this is no id of a job.")
    found = await visit.operator.dead.find(
        group=given.get("group"),
        type_name=given.get("type"),
        tenant=given.get("tenant"),
        resolution=_resolution(given["resolution"]) if "resolution" in given else None,
        before=before or None,
        limit=LETTERS_SHOWN,
    )
    following = found[-1].job_id if len(found) == LETTERS_SHOWN else None
    return Letters(found, given, following)


def said(visit: Visit) -> Resolution:
    """Where somebody stands, as a form says it."""
    return _resolution(visit.form.get("resolution", Resolution.RESOLVED))


def notes(visit: Visit) -> str | None:
    """What somebody noted in a form; none if nothing."""
    text = visit.form.get("notes")
    if len(text) > MAX_NOTES:
        raise InvalidOption("notes", f"{len(text):,} characters", f"at most {MAX_NOTES:,}")
    return text or None


def _resolution(text: str) -> Resolution:
    if text not in set(Resolution):
        raise InvalidOption("resolution", text, f"one of: {', '.join(Resolution)}")
    return Resolution(text)


def _number(visit: Visit, name: str, default: int) -> int:
    text = visit.form.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidOption(name, text, "a whole number")
    return int(text)


async def _jobs(visit: Visit, ids: list[str]) -> list[Job]:
    """The jobs in the order of their ids."""
    known = {job.id: job for job in await visit.server.app.store.reader.get(ids)}
    return [known[job_id] for job_id in ids if job_id in known]


def _requeued(
    visit: Visit, group: DeadGroup, done: int, refused: dict[str, str], became: str
) -> Response:
    text = f"{done:,} {'job' if done == 1 else 'jobs'} {became}."
    if refused:
        reasons = " ".join(list(refused.values())[:MAX_REFUSED_TOLD])
        text += f" {len(refused):,} could not be: {reasons}"
    return visit.redirect(f"dead/groups/{group.id}", text, bad=not done)


def _letters(count: int) -> str:
    return f"{count:,} {'letter' if count == 1 else 'letters'}"
