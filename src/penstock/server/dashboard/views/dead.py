"""Dead letters in groups: what died of the same error, a few tried again, the rest released."""

from typing import Annotated

from fastapi import Query
from msgspec import Struct
from starlette.responses import Response

from penstock.model.errors import InvalidOption
from penstock.model.ids import is_id
from penstock.model.job import MAX_NOTES, Job
from penstock.model.wording import counted
from penstock.operate.dead import MOST_CANARIES, LetterFields
from penstock.server.dashboard.request import OperateVisit, Question, ReadVisit, Visit, ask
from penstock.server.dashboard.route import page_router
from penstock.server.problems import Refusal
from penstock.store.contract import DeadGroup, DeadLetter, Resolution

router = page_router()

GROUPS_SHOWN = 100
LETTERS_SHOWN = 50
CANARIES = 5
CANARIES_SHOWN = 50
MAX_REFUSED_TOLD = 3

Word = Annotated[str, Query(max_length=255)]


class Letters(Struct, frozen=True):
    """A page of dead letters, which of them were asked for, and where the next page begins."""

    shown: list[DeadLetter]
    filters: dict[str, str]
    following: str | None


@router.get("/dead")
async def groups(
    visit: ReadVisit,
    type: Word = "",  # noqa: A002 - the field's name
    closed: bool = False,
    before: Word = "",
) -> Response:
    """A page of groups, the one with the latest death first."""
    found = await visit.operator.dead.groups(
        type or None, closed=closed, before=_place(before), limit=GROUPS_SHOWN + 1
    )
    shown = found[:GROUPS_SHOWN]
    return await visit.page(
        "dead.html",
        "dead",
        groups=shown,
        following=shown[-1].newest_id if len(found) > GROUPS_SHOWN else None,
        before=before,
        most=max((group.count for group in shown), default=0),
        open=sum(group.open for group in shown),
        type=type,
        closed=closed,
    )


@router.get("/dead/letters")
async def all_letters(
    visit: ReadVisit,
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


@router.get("/dead/purge")
async def ask_to_purge_letters(
    visit: OperateVisit,
    type: Word = "",  # noqa: A002 - the field's name
    tenant: Word = "",
    resolution: Word = "",
    days: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Count what a filter finds, and ask before it is purged."""
    filters = {"type": type, "tenant": tenant, "resolution": resolution, "days": days}
    found = await visit.operator.dead.count(**_purged(filters))
    question = Question(
        title=f"Delete {counted(found, 'dead letter')} for good?",
        text="They are deleted with their jobs and cannot be brought back. Jobs that were "
        "requeued and have not finished are left alone.",
        label=f"Delete {counted(found, 'dead letter')}",
        action="dead/purge",
        back="dead/letters",
        facts={
            "Type": type or "any",
            "Tenant": tenant or "any",
            "Resolution": resolution or "any",
            "Died": f"more than {days} days ago" if days else "at any time",
        },
        hidden=filters,
    )
    return await ask(visit, "dead", question)


@router.post("/dead/purge")
async def purge_letters(visit: OperateVisit) -> Response:
    """Delete what a filter finds, with the jobs."""
    names = ("type", "tenant", "resolution", "days")
    filters = {name: visit.form.get(name, "") for name in names}
    purged = await visit.operator.dead.purge(**_purged(filters))
    return visit.redirect("dead/letters", f"{counted(purged, 'dead letter')} deleted for good.")


@router.get("/dead/groups/{group}")
async def group_page(
    visit: ReadVisit, group: str, resolution: Word = "", before: Word = ""
) -> Response:
    """One group: its letters, how its canaries fare, and what can be done with it."""
    dead = visit.operator.dead
    found = await dead.group(group)
    canaries = await dead.canaries(found)
    filters = {"group": found.id, "resolution": resolution}
    tried = [*canaries.failed, *canaries.unfinished, *canaries.completed]
    return await visit.page(
        "group.html",
        "dead",
        group=found,
        letters=await letters_of(visit, filters, before, found),
        canaries=canaries,
        tried=await _jobs(visit, tried[:CANARIES_SHOWN]),
        unproven=bool(canaries.failed or canaries.unfinished),
        resolutions=list(Resolution),
        most_canaries=MOST_CANARIES,
    )


@router.post("/dead/groups/{group}/replay")
async def replay(visit: OperateVisit, group: str) -> Response:
    """Run the newest few again, to see whether the cause is gone."""
    found = await visit.operator.dead.group(group)
    newest = visit.form.whole("canary", least=1, most=MOST_CANARIES) or CANARIES
    answer = await visit.operator.dead.replay(found.id, newest)
    return _requeued(visit, found, len(answer.handles), answer.refused, "run as canaries")


@router.post("/dead/groups/{group}/release")
async def release(visit: OperateVisit, group: str) -> Response:
    """Run the rest again at a rate, the oldest first."""
    found = await visit.operator.dead.group(group)
    rate = visit.form.get("rate") or None
    answer = await visit.operator.dead.release(found.id, rate, force=bool(visit.form.get("force")))
    return _requeued(visit, found, len(answer.done), answer.refused, "released")


@router.post("/dead/groups/{group}/resolve")
async def resolve(visit: OperateVisit, group: str) -> Response:
    """Record where somebody stands with the open ones."""
    found = await visit.operator.dead.group(group)
    ids = await visit.operator.dead.resolve(found.id, chosen_resolution(visit), notes=notes(visit))
    return visit.redirect(
        f"dead/groups/{found.id}", f"The resolution of {counted(len(ids), 'dead letter')} is saved."
    )


@router.get("/dead/groups/{group}/purge")
async def ask_to_purge(visit: OperateVisit, group: str) -> Response:
    """Ask before a group's open letters are purged."""
    found = await visit.operator.dead.group(group)
    place = f"dead/groups/{found.id}"
    question = Question(
        title=f"Delete {counted(found.open, 'dead letter')} for good?",
        text="All open ones are deleted with their jobs, and cannot be brought back.",
        label=f"Delete {counted(found.open, 'dead letter')}",
        action=f"{place}/purge",
        back=place,
        facts={"Group": found.id, "Type": found.type, "Error": found.error or "–"},
    )
    return await ask(visit, "dead", question)


@router.post("/dead/groups/{group}/purge")
async def purge(visit: OperateVisit, group: str) -> Response:
    """Delete a group's open letters, with their jobs."""
    found = await visit.operator.dead.group(group)
    purged = await visit.operator.dead.purge(found.id)
    return visit.redirect("dead", f"{counted(purged, 'dead letter')} deleted for good.")


async def letters_of(
    visit: Visit, filters: dict[str, str], before: str, group: DeadGroup | None = None
) -> Letters:
    """The letters that filters find, a page of them; empty filters say nothing."""
    given = {name: value for name, value in filters.items() if value}
    found = await visit.operator.dead.find(
        group=group,
        type_name=given.get("type"),
        tenant=given.get("tenant"),
        resolution=given.get("resolution"),
        before=_place(before),
        limit=LETTERS_SHOWN,
    )
    following = found[-1].job_id if len(found) == LETTERS_SHOWN else None
    return Letters(found, given, following)


def chosen_resolution(visit: Visit) -> Resolution:
    """Where somebody stands, as a form says it."""
    return _resolution(visit.form.get("resolution", Resolution.RESOLVED))


def notes(visit: Visit) -> str | None:
    """What somebody noted in a form; none if nothing."""
    return visit.form.words("notes", MAX_NOTES)


def _purged(filters: dict[str, str]) -> LetterFields:
    """What the form to purge says; a field that is empty says nothing."""
    days = filters["days"]
    if days and not days.isdecimal():
        raise InvalidOption("days", days, "a whole number of days")
    return LetterFields(
        type_name=filters["type"] or None,
        tenant=filters["tenant"] or None,
        resolution=filters["resolution"] or "any",
        older_than=int(days) * 86_400.0 if days else None,
    )


def _place(before: str) -> str | None:
    """Where a page begins; none for the first."""
    if before and not is_id(before):
        raise Refusal(422, "before: this is no id of a job; go on from the first page.")
    return before or None


def _resolution(text: str) -> Resolution:
    if text not in set(Resolution):
        raise InvalidOption("resolution", text, f"one of: {', '.join(Resolution)}")
    return Resolution(text)


async def _jobs(visit: Visit, ids: list[str]) -> list[Job]:
    """The jobs in the order of their ids."""
    known = {job.id: job for job in await visit.server.app.store.reader.get(ids)}
    return [known[job_id] for job_id in ids if job_id in known]


def _requeued(
    visit: Visit, group: DeadGroup, done: int, refused: dict[str, str], became: str
) -> Response:
    text = f"{counted(done, 'job')} {became}."
    if refused:
        reasons = " ".join(list(refused.values())[:MAX_REFUSED_TOLD])
        text += f" {len(refused):,} could not be: {reasons}"
    return visit.redirect(f"dead/groups/{group.id}", text, bad=not done)
