"""What an operator does to work as a whole, on record: pauses, limits, breakers."""

from typing import TYPE_CHECKING, Any

from penstock.app.declare import limits_of
from penstock.model.refused import BreakerNotFound, LimitNotFound
from penstock.operate.controls import Controls

if TYPE_CHECKING:
    from penstock.model.controls import Pause
    from penstock.operate.operating.actor import Acting


class ControlOperator:
    """`operator.controls`: for operators of the whole installation."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._controls = Controls(acting.app.store)

    async def pause(
        self, scope: str, name: str, *, reason: str | None = None, by: str | None = None
    ) -> "Pause":
        """Hold a queue, a type or a tenant back; `by` is whom others see, if somebody else."""
        what, who = _fields(scope, name), by or self._acting.name
        said = None if reason is None else await self._acting.journal.keyed_hash(reason)
        async with self._acting.doing("pause", f"{scope}:{name}", reason_hash=said):
            return await self._controls.pause(reason=reason, by=who, **what)

    async def resume(self, scope: str, name: str) -> bool:
        """Let it go on; whether it was paused."""
        async with self._acting.doing("resume", f"{scope}:{name}"):
            return await self._controls.resume(**_fields(scope, name))

    async def set_limit(
        self,
        scope: str,
        name: str,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        depth: int | None = None,
    ) -> None:
        """Set limits that outlive a deploy; a kind that is left out stays as it is."""
        limit = _fields(scope, name)
        limit |= {"concurrency": concurrency, "rate": rate, "depth": depth}
        found = limits_of(limit, by_operator=True)
        bounds: dict[str, Any] = {each.kind.value: each.capacity for each in found}
        async with self._acting.doing("limit.set", f"{scope}:{name}", **bounds):
            await self._controls.set_limit(**limit)

    async def remove_limit(self, scope: str, name: str, kind: str | None = None) -> None:
        """Take limits away, all kinds or one; LimitNotFound if there is none."""
        async with self._acting.doing("limit.remove", f"{scope}:{name}", kind=kind):
            if not await self._controls.remove_limit(kind=kind, **_fields(scope, name)):
                raise LimitNotFound(scope, name, kind)

    async def reset_breaker(self, name: str) -> None:
        """Close a breaker by hand; BreakerNotFound if there is none of this name."""
        async with self._acting.doing("breaker.reset", f"breaker:{name}"):
            if not await self._controls.reset_breaker(name):
                raise BreakerNotFound(name)


def _fields(scope: str, name: str) -> dict[str, Any]:
    """The keyword argument that says it to `app.controls`."""
    return {str(scope): name}
