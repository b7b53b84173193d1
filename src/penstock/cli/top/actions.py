"""What a key does to what is chosen."""

from typing import TYPE_CHECKING

from penstock.cli.session import actor
from penstock.cli.top.snapshot import Snapshot
from penstock.cli.top.state import Panel, State
from penstock.client.explain import explain
from penstock.client.journal import Journal
from penstock.model.pause import PauseScope

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from penstock.model.audit import Entry
    from penstock.store.contract import Store

BY = "penstock top"


class Actions:
    """Pauses, cancels and requeues; each answers with a sentence."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._cancels: str | None = None

    def question(self, key: str, snapshot: Snapshot, state: State) -> str | None:
        """What to ask before doing it, if that is necessary."""
        chosen = state.selected(snapshot)
        if key != "c" or state.panel is not Panel.RUNNING or chosen is None:
            return None
        self._cancels = chosen
        return f"Ask job {chosen} to stop?"

    async def confirmed(self) -> str | None:
        """Cancel the job that was asked about."""
        if self._cancels is None:
            return None
        job_id, self._cancels = self._cancels, None
        async with self._doing("job.cancel", f"job:{job_id}"):
            found = await self._store.jobs.cancel([job_id], f"cancelled in {BY}")
        stopped = "is cancelled" if found[job_id] == "cancelled" else "was asked to stop"
        return f"Job {job_id} {stopped}."

    async def do(self, key: str, snapshot: Snapshot, state: State) -> str | None:
        """Do what needs no question; a sentence, or nothing for a key without a meaning."""
        chosen = state.selected(snapshot)
        match key, state.panel:
            case (("p" | "c" | "r"), _) if chosen is None:
                return "There is nothing to choose here."
            case "p", Panel.QUEUES if chosen is not None:
                return await self._toggle(PauseScope.QUEUE, chosen, snapshot)
            case "p", (Panel.RUNNING | Panel.FAILURES) if chosen is not None:
                return await self._toggle(PauseScope.JOB, chosen, snapshot)
            case "r", Panel.FAILURES if chosen is not None:
                async with self._doing("job.requeue", f"job:{chosen}"):
                    await self._store.jobs.requeue([chosen])
                return f"Job {chosen} will run again."
            case "e", (Panel.RUNNING | Panel.FAILURES) if chosen is not None:
                return await self._explained(chosen)
            case "p", _:
                return "Choose a queue to pause or resume it."
            case "c", _:
                return "Choose a running job to cancel it."
            case "r", _:
                return "Choose a failure to requeue it."
            case "e", _:
                return "Choose a job to see why it is as it is."
            case _:
                return None

    def _doing(self, action: str, subject: str) -> "AbstractAsyncContextManager[Entry]":
        return Journal(self._store).doing(actor(), action, subject, details={"in": "top"})

    async def _explained(self, job_id: str) -> str:
        found = await self._store.reader.standing(job_id)
        return "The job is gone." if found is None else explain(found).summary

    async def _toggle(self, scope: PauseScope, name: str, snapshot: Snapshot) -> str:
        if any((pause.scope, pause.name) == (scope, name) for pause in snapshot.pauses):
            async with self._doing("resume", f"{scope}:{name}"):
                await self._store.controls.resume(scope, name)
            return f"The {scope} {name} goes on."
        async with self._doing("pause", f"{scope}:{name}"):
            await self._store.controls.pause(scope, name, reason=f"paused in {BY}", by=BY)
        return f"The {scope} {name} is paused; p resumes it."
