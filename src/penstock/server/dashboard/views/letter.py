"""One dead letter: the job as it died, where its code broke, and its arguments to correct."""

from typing import Any

import msgspec
from starlette.responses import Response

from penstock.client.dead import DeadView
from penstock.client.documents import decoded
from penstock.model.errors import PenstockError, StoreError
from penstock.model.states import sources
from penstock.server.access.scopes import Scope
from penstock.server.dashboard.confirm import Question, asked_first
from penstock.server.dashboard.render import pretty
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.views.dead import notes, said
from penstock.server.dashboard.visit import Operating, Reading, Visit
from penstock.store.contract import Resolution

router = page_router()

EXECUTIONS_SHOWN = 50


@router.get("/dead/letters/{job_id}")
async def letter_page(visit: Reading, job_id: str) -> Response:
    """Everything known of how a job died."""
    return await _page(visit, job_id)


@router.post("/dead/letters/{job_id}/amend")
async def amend(visit: Operating, job_id: str) -> Response:
    """Correct its arguments, and run it again if the form says so."""
    requeue = bool(visit.form.get("requeue"))
    given = visit.form.get("payload")
    await visit.operator.dead.show(job_id)
    try:
        payload = msgspec.json.encode(msgspec.json.decode(given)).decode()
        job = await visit.operator.dead.amend(job_id, payload=payload, requeue=requeue)
    except (msgspec.DecodeError, RecursionError) as error:
        return await _page(visit, job_id, given, f"This is no JSON: {error}.")
    except StoreError:
        raise
    except PenstockError as error:
        return await _page(visit, job_id, given, str(error))
    if requeue:
        return visit.redirect(f"jobs/{job.id}", "Its arguments are corrected, and it runs again.")
    return visit.redirect(f"dead/letters/{job.id}", "Its arguments are corrected.")


@router.post("/dead/letters/{job_id}/requeue")
async def requeue(visit: Operating, job_id: str) -> Response:
    """Run it again as it is."""
    await visit.operator.dead.show(job_id)
    job = await visit.operator.requeue(job_id)
    return visit.redirect(f"jobs/{job.id}", "The job is requeued.")


@router.post("/dead/letters/{job_id}/resolve")
async def resolve(visit: Operating, job_id: str) -> Response:
    """Record where somebody stands with it."""
    letter = (await visit.operator.dead.show(job_id)).letter
    await visit.operator.dead.resolve([letter.job_id], said(visit), notes=notes(visit))
    return visit.redirect(f"dead/letters/{letter.job_id}", "Recorded.")


@router.get("/dead/letters/{job_id}/purge")
async def ask_to_purge(visit: Operating, job_id: str) -> Response:
    """Ask before a letter is deleted."""
    letter = (await visit.operator.dead.show(job_id)).letter
    place = f"dead/letters/{letter.job_id}"
    question = Question(
        title="Delete this letter for good?",
        text="It is deleted with its job, and nothing brings it back.",
        label="Delete it",
        action=f"{place}/purge",
        back=place,
        facts={"Job": letter.job_id, "Type": letter.type, "Error": letter.error or "–"},
    )
    return await asked_first(visit, "dead", question)


@router.post("/dead/letters/{job_id}/purge")
async def purge(visit: Operating, job_id: str) -> Response:
    """Delete it, with its job."""
    letter = (await visit.operator.dead.show(job_id)).letter
    await visit.operator.dead.purge(letter.job_id)
    return visit.redirect("dead", "The letter is deleted for good.")


async def _page(
    visit: Visit, job_id: str, entered: str | None = None, problem: str | None = None
) -> Response:
    view = await visit.operator.dead.show(job_id)
    store = visit.server.app.store
    jobs = await store.reader.get([job_id])
    executions = await store.reader.executions(job_id)
    snapshot = decoded(view.letter.snapshot)
    current = view.edited or (jobs[0].payload if jobs else None)
    return await visit.page(
        "letter.html",
        "dead",
        status=200 if problem is None else 422,
        live=problem is None,
        view=view,
        letter=view.letter,
        job=jobs[0] if jobs else None,
        snapshot=snapshot,
        died_with=_payload(view, snapshot),
        executions=executions[::-1][:EXECUTIONS_SHOWN],
        entered=entered if entered is not None else pretty(current or "{}"),
        problem=problem,
        known=view.letter.type in visit.server.app.types,
        requeueable=bool(jobs) and jobs[0].status in sources("requeue"),
        resolutions=list(Resolution),
        may_operate=visit.caller.may(Scope.OPERATE),
    )


def _payload(view: DeadView, snapshot: Any) -> Any:
    """The arguments it died with, out of what was kept."""
    if isinstance(snapshot, dict) and "payload" in snapshot:
        return decoded_if_text(snapshot["payload"])
    return view.letter.snapshot


def decoded_if_text(found: Any) -> Any:
    """A document that may itself be kept as text."""
    return decoded(found) if isinstance(found, str) else found
