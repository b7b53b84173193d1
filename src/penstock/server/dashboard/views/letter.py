"""One dead letter: the job as it died, where its code broke, and its arguments to correct."""

from typing import Any

from starlette.responses import Response

from penstock.model.errors import PenstockError
from penstock.model.states import sources
from penstock.model.store_errors import StoreError
from penstock.operate.documents import decoded
from penstock.server.dashboard.render import pretty
from penstock.server.dashboard.request import Entered, OperateVisit, Question, ReadVisit, Visit, ask
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.views.dead import chosen_resolution, notes
from penstock.server.dashboard.views.job import runs_of, worker_names
from penstock.server.problems import Refusal
from penstock.store.contract import DeadLetter, Resolution

router = page_router()

EXECUTIONS_SHOWN = 50


@router.get("/dead/letters/{job_id}")
async def letter_page(visit: ReadVisit, job_id: str) -> Response:
    """Everything known of how a job died."""
    return await _page(visit, job_id)


@router.post("/dead/letters/{job_id}/amend")
async def amend(visit: OperateVisit, job_id: str) -> Response:
    """Correct its arguments, and run it again if the form says so."""
    requeue = bool(visit.form.get("requeue"))
    await visit.operator.dead.show(job_id)
    try:
        payload = visit.form.json("payload")
        job = await visit.operator.dead.amend(job_id, payload=payload, requeue=requeue)
    except StoreError:
        raise
    except (Refusal, PenstockError) as error:
        entered = Entered({"payload": visit.form.get("payload")}, {"payload": str(error)})
        return await _page(visit, job_id, entered)
    if requeue:
        return visit.redirect(f"jobs/{job.id}", "The payload is corrected and the job requeued.")
    return visit.redirect(f"dead/letters/{job.id}", "The payload is corrected.")


@router.post("/dead/letters/{job_id}/requeue")
async def requeue(visit: OperateVisit, job_id: str) -> Response:
    """Run it again as it is."""
    await visit.operator.dead.show(job_id)
    job = await visit.operator.jobs.requeue(job_id)
    return visit.redirect(f"jobs/{job.id}", "The job is requeued.")


@router.post("/dead/letters/{job_id}/resolve")
async def resolve(visit: OperateVisit, job_id: str) -> Response:
    """Record where somebody stands with it."""
    letter = (await visit.operator.dead.show(job_id)).letter
    await visit.operator.dead.resolve([letter.job_id], chosen_resolution(visit), notes=notes(visit))
    return visit.redirect(f"dead/letters/{letter.job_id}", "The resolution is saved.")


@router.get("/dead/letters/{job_id}/purge")
async def ask_to_purge(visit: OperateVisit, job_id: str) -> Response:
    """Ask before a letter is purged."""
    letter = (await visit.operator.dead.show(job_id)).letter
    place = f"dead/letters/{letter.job_id}"
    question = Question(
        title="Delete this dead letter for good?",
        text="It is deleted with its job and cannot be brought back.",
        label="Delete it",
        action=f"{place}/purge",
        back=place,
        facts={"Job": letter.job_id, "Type": letter.type, "Error": letter.error or "–"},
    )
    return await ask(visit, "dead", question)


@router.post("/dead/letters/{job_id}/purge")
async def purge(visit: OperateVisit, job_id: str) -> Response:
    """Delete it, with its job."""
    letter = (await visit.operator.dead.show(job_id)).letter
    await visit.operator.dead.purge(letter.job_id)
    return visit.redirect("dead", "The dead letter is deleted.")


async def _page(visit: Visit, job_id: str, entered: Entered | None = None) -> Response:
    view = await visit.operator.dead.show(job_id)
    store = visit.server.app.store
    jobs = await store.reader.get([job_id])
    executions = await store.reader.executions(job_id)
    current = view.amended or (jobs[0].payload if jobs else None)
    form = entered or Entered({"payload": pretty(current or "{}")})
    return await visit.page(
        "letter.html",
        "dead",
        status=form.status,
        live=entered is None,
        view=view,
        letter=view.letter,
        job=jobs[0] if jobs else None,
        died_with=_payload(view.letter),
        runs=runs_of(executions, visit.now)[::-1][:EXECUTIONS_SHOWN],
        workers=await worker_names(visit),
        values=form.values,
        problems=form.problems,
        known=view.letter.type in visit.server.app.types,
        requeueable=bool(jobs) and jobs[0].status in sources("requeue"),
        resolutions=list(Resolution),
    )


def _payload(letter: DeadLetter) -> Any:
    """The arguments it died with, out of what was kept; they may be kept as text themselves."""
    snapshot = decoded(letter.snapshot)
    whole = isinstance(snapshot, dict) and "payload" in snapshot
    return decoded(snapshot["payload"]) if whole else snapshot
