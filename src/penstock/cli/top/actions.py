"""What a key does to what is chosen."""

from typing import TYPE_CHECKING

from penstock.cli.top.snapshot import Snapshot
from penstock.cli.top.state import Panel, State
from penstock.model.errors import JobNotFound
from penstock.model.pause import PauseScope
from penstock.model.states import Status

if TYPE_CHECKING:
    from penstock.client.operator import Operator

BY = "penstock top"


class Actions:
    """Pauses, cancels and requeues, on record; each answers with a sentence."""

    def __init__(self, operator: "Operator") -> None:
        self._operator = operator
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
        status = await self._operator.cancel(job_id, f"cancelled in {BY}")
        stopped = "is cancelled" if status is Status.CANCELLED else "was asked to stop"
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
                await self._operator.requeue(chosen)
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

    async def _explained(self, job_id: str) -> str:
        try:
            return (await self._operator.explain(job_id)).summary
        except JobNotFound:
            return "The job is gone."

    async def _toggle(self, scope: PauseScope, name: str, snapshot: Snapshot) -> str:
        paused = any((pause.scope, pause.name) == (scope, name) for pause in snapshot.pauses)
        reason = f"paused in {BY}"
        match scope, paused:
            case PauseScope.JOB, True:
                await self._operator.resume(name)
            case PauseScope.JOB, False:
                await self._operator.pause(name, reason)
            case _, True:
                await self._operator.controls.resume("queue", name)
            case _:
                await self._operator.controls.pause("queue", name, reason=reason, by=BY)
        return f"The {scope} {name} " + ("goes on." if paused else "is paused; p resumes it.")
