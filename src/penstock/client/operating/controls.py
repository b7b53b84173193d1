"""What an operator does to work as a whole, on record: pauses, limits, breakers."""

from typing import TYPE_CHECKING, Any, Unpack

from penstock.client.controls import Controls, PauseFields
from penstock.client.limits import LimitFields, Subject, limits_of, subject_of

if TYPE_CHECKING:
    from penstock.client.operating.acting import Acting
    from penstock.model.pause import Pause


class ControlOperator:
    """`operator.controls`: for operators of the whole installation."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._controls = Controls(acting.app.store)

    async def pause(
        self, *, reason: str | None = None, by: str | None = None, **what: Unpack[PauseFields]
    ) -> "Pause":
        """Hold a queue, a type or a tenant back; `by` is whom others see, if somebody else."""
        said = None if reason is None else await self._acting.journal.keyed_hash(reason)
        async with self._acting.doing("pause", _named(what), reason_hash=said):
            return await self._controls.pause(reason=reason, by=by or self._acting.name, **what)

    async def resume(self, **what: Unpack[PauseFields]) -> bool:
        """Let it go on; whether it was paused."""
        async with self._acting.doing("resume", _named(what)):
            return await self._controls.resume(**what)

    async def set_limit(self, **limit: Unpack[LimitFields]) -> None:
        """Set a limit that outlives a deploy."""
        found = limits_of(limit, by_operator=True)
        bounds: dict[str, Any] = {each.kind.value: each.capacity for each in found}
        subject = f"{found[0].scope}:{found[0].name}"
        async with self._acting.doing("limit.set", subject, **bounds):
            await self._controls.set_limit(**limit)

    async def drop_limit(self, *, kind: str | None = None, **about: Unpack[Subject]) -> bool:
        """Take limits away, all kinds or one; whether there was any."""
        scope, name = subject_of(about)
        async with self._acting.doing("limit.drop", f"{scope}:{name}", kind=kind):
            return await self._controls.drop_limit(kind=kind, **about)

    async def reset_breaker(self, name: str) -> bool:
        """Close a breaker by hand; whether there is one of this name."""
        async with self._acting.doing("breaker.reset", f"breaker:{name}"):
            return await self._controls.reset_breaker(name)


def _named(what: PauseFields) -> str:
    return ",".join(f"{scope}:{name}" for scope, name in what.items())
