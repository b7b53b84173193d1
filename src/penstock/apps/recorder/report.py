"""What the sanitiser took out, never what it was; and what the recorder's own models cost."""

from typing import TYPE_CHECKING, Any

from penstock.apps.recorder.records import Caught, OwnCost

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

DAY_MS = 86_400_000


async def caught(
    app: "Penstock",
    *,
    tenant: str | None = None,
    conversation_id: str | None = None,
    since: int = 0,
) -> list[Caught]:
    """Return what each rule has taken out, the busiest rule first."""
    asked = {"tenant": tenant, "conversation_id": conversation_id, "since": since}
    rows = await app.read(lambda tx: tx.recorder.rows("caught", asked))
    return [_caught(row) for row in rows]


async def caught_by_day(
    app: "Penstock", *, tenant: str | None = None, since: int = 0
) -> list[tuple[int, int]]:
    """Return how much was taken out each day: the UTC time at which it begins, and the number."""
    asked = {"tenant": tenant, "conversation_id": None, "since": since}
    rows = await app.read(lambda tx: tx.recorder.rows("caught_by_day", asked))
    return [(int(day) * DAY_MS, int(count)) for day, count in rows]


async def own_costs(
    app: "Penstock", *, tenant: str | None = None, since: int, until: int
) -> list[OwnCost]:
    """Return what our own calls of models cost in a span of time, by purpose and model."""
    asked = {"tenant": tenant, "since": since, "until": until}
    rows = await app.read(lambda tx: tx.recorder.rows("own_costs", asked))
    return [
        OwnCost(
            purpose=purpose,
            model=model,
            calls=int(calls),
            input=int(given),
            output=int(written),
            cost=float(cost),
        )
        for purpose, model, calls, given, written, cost in rows
    ]


def _caught(row: tuple[Any, ...]) -> Caught:
    category, rule_id, detector, count, sessions, confidence, last_at = row
    return Caught(
        category=category,
        rule_id=rule_id,
        detector=detector,
        count=int(count),
        sessions=int(sessions),
        confidence=float(confidence),
        last_at=int(last_at),
    )
