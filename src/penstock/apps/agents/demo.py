"""Users of a shop and the agent that helps them, made up: their sessions become all the rest.

Each session is a task that is done with a tool, and ends well or not; what a user says of
themselves on the way is remembered. Some of it changes, and some is said again in other words.
"""

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.apps.agents.access import agents_in
from penstock.apps.agents.sessions.records import AgentSession, NewTurn, SessionFilter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SEED = 17
HOUR_MS = 3_600_000
PLAYED = "demo"
"""Under this name the metadata of a session says what is played in it."""
AT_ONCE = 3
TENANTS = {"north": ("ada", "grace", "radia"), "south": ("edsger", "barbara", "ken")}
CLOSED = "support.session_closed"
"""The topic of sessions that are over."""


class Kind(NamedTuple):
    """Tasks that resemble each other: with which skill they are done, and how often well."""

    name: str
    skill: str
    asks: tuple[str, ...]
    done: str
    failed: str
    well: float


KINDS = (
    Kind(
        "refund",
        "refund_order",
        (
            "Please refund order {n}, it arrived broken.",
            "Refund my order {n}, please, the vase arrived broken.",
            "Order {n} arrived broken, please refund it.",
            "The lamp of order {n} arrived broken, please refund the order.",
        ),
        "Order {n} is refunded.",
        "Order {n} cannot be refunded any more.",
        0.95,
    ),
    Kind(
        "track",
        "track_parcel",
        (
            "Where is my parcel {n}?",
            "Where is parcel {n} now?",
            "Can you tell me where my parcel {n} is?",
            "My parcel {n} is late, where is it?",
        ),
        "Parcel {n} arrives tomorrow.",
        "Nobody knows where parcel {n} is.",
        0.9,
    ),
    Kind(
        "address",
        "change_address",
        (
            "Change the delivery address of order {n}, which has shipped already.",
            "Order {n} has shipped, please change its delivery address.",
            "Please change the delivery address of the shipped order {n}.",
            "Can you change the address of order {n}? It has shipped already.",
        ),
        "The address of order {n} is changed.",
        "The carrier refuses another address for order {n}.",
        0.1,
    ),
)

SAYINGS: dict[str, tuple[str, ...]] = {
    "ada": (
        "Ada lives in Turin.",
        "Ada prefers deliveries in the evening.",
        "Ada likes her deliveries in the evening best.",
        "Ada is allergic to wool.",
        "Ada would like deliveries in the evening, as always.",
        "Ada's budget for the new office is 2,000 euros.",
        "Ada now lives in Oslo.",
        "Ada's budget for the new office is now 3,500 euros.",
        "Ada's deliveries go to the back door in the evening.",
    ),
    "grace": (
        "Grace works at the university of Lyon.",
        "Grace orders two boxes of green tea every month.",
        "Grace orders green tea every month, two boxes of it.",
        "Grace's birthday is on the ninth of December.",
        "Grace's monthly order is two boxes of green tea.",
        "Grace no longer works at the university of Lyon; she works at the museum.",
        "Grace's sister Anna lives in Ghent.",
    ),
    "radia": (
        "Radia's shop opens at nine.",
        "Radia wants invoices by e-mail, not by post.",
        "Radia asked for invoices by e-mail and not by post.",
        "Radia's shop now opens at ten.",
        "Radia plans a trip to Lisbon in May.",
    ),
    "edsger": (
        "Edsger's team has twelve people.",
        "Edsger writes with a fountain pen and needs black ink.",
        "Edsger needs black ink for his fountain pen.",
        "Edsger's team now has fifteen people.",
        "Edsger never wants plastic packaging.",
    ),
    "barbara": (
        "Barbara's office is on the third floor.",
        "Barbara pays by bank transfer.",
        "Barbara always pays by bank transfer.",
        "Barbara's office has moved to the fifth floor.",
        "Barbara's contract ends on the first of June.",
    ),
    "ken": (
        "Ken's dog is called Unix.",
        "Ken takes shoe size 44.",
        "Ken wears shoes of size 44.",
        "Ken's parcels are left with his neighbour Dennis.",
        "Ken has moved from Berlin to Vienna.",
    ),
}


async def play(app: "Penstock", sessions: int = 36) -> int:
    """Hold sessions that are over, so that there is something to learn from; how many."""
    chance = Random(SEED)
    now = app.store.clock.now()
    people = [(tenant, user) for tenant, users in TENANTS.items() for user in users]
    for n in range(sessions):
        tenant, user = people[n % len(people)]
        session = await _open(app, chance, tenant, user, f"demo-{n}")
        while await _go_on(app, session):
            session = await agents_in(app).sessions.get(session.id)
        await _remember(app, session, n // len(people), now - (sessions - n) * HOUR_MS)
    return sessions


async def go_on(app: "Penstock", chance: Random) -> int:
    """Have every session that is under way go on by a turn, and another begin; how many."""
    sessions = agents_in(app).sessions
    active = await sessions.list(SessionFilter(status="active", limit=50))
    ours = [session for session in active if PLAYED in session.metadata]
    for session in ours:
        if not await _go_on(app, session):
            before = SessionFilter(user=session.user_id, status="closed", limit=100)
            await _remember(app, session, len(await sessions.list(before)) - 1)
            told = {"session": session.id, "user": session.user_id, "turns": session.turns}
            await agents_in(app).webhooks.publish(CLOSED, told, tenant=session.tenant_id)
    if len(ours) < AT_ONCE:
        tenant = chance.choice(list(TENANTS))
        await _open(app, chance, tenant, chance.choice(TENANTS[tenant]))
    return len(ours)


async def consolidate(app: "Penstock", tenant: str) -> int:
    """Enqueue a consolidation of what is remembered of each user of a tenant; how many."""
    for user in TENANTS[tenant]:
        await agents_in(app).memories.consolidate(tenant=tenant, user=user)
    return len(TENANTS[tenant])


async def set_quotas(app: "Penstock") -> None:
    """Let tenants use more than they will."""
    quotas = agents_in(app).quotas
    await quotas.set("north", "jobs", 50_000, period="day", action="warn")
    await quotas.set("south", "jobs", 20_000, period="day", action="throttle")
    await quotas.set("north", "storage", 20 << 20, action="warn")
    await quotas.set("south", "storage", 50 << 20, action="warn")


async def _open(
    app: "Penstock", chance: Random, tenant: str, user: str, session_id: str | None = None
) -> AgentSession:
    """Have a user ask for something; patterns that fit are followed."""
    agents = agents_in(app)
    kind = chance.choice(KINDS)
    asked = chance.choice(kind.asks).format(n=chance.randrange(1_000, 9_999))
    found = await agents.learning.match(asked, tenant=tenant, skills=[kind.skill], k=2)
    played = {
        "kind": kind.name,
        "asked": asked,
        "well": chance.random() < kind.well,
        "followed": [each.pattern.id for each in found],
    }
    return await agents.sessions.open(
        tenant=tenant, user=user, session_id=session_id, metadata={PLAYED: played}
    )


async def _go_on(app: "Penstock", session: AgentSession) -> bool:
    """Add the next turn of a session; close it after the last, and say so."""
    sessions = agents_in(app).sessions
    turns = _turns(session.metadata[PLAYED])
    if session.turns < len(turns):
        await sessions.add(session.id, turns[session.turns])
        return True
    await sessions.close(session.id)
    return False


def _turns(played: dict[str, Any]) -> list[NewTurn]:
    kind = next(each for each in KINDS if each.name == played["kind"])
    number = "".join(letter for letter in played["asked"] if letter.isdigit())
    well = played["well"]
    done = (kind.done if well else kind.failed).format(n=number)
    followed = {"patternIds": played["followed"]} if played["followed"] else {}
    return [
        NewTurn(n=1, role="user", content=played["asked"]),
        NewTurn(n=2, role="assistant", content="I will see to it.", metadata=followed),
        NewTurn(n=3, role="tool", content=done, skill_id=kind.skill, succeeded=well),
        NewTurn(n=4, role="assistant", content=done),
        NewTurn(
            n=5,
            role="user",
            content="Thanks, that works." if well else "That does not help.",
            metadata={"feedback": "positive" if well else "negative"},
        ),
    ]


async def _remember(app: "Penstock", session: AgentSession, n: int, at: int | None = None) -> None:
    """Remember what the user said of themselves; what is known already is not kept twice."""
    sayings = SAYINGS[session.user_id or "ada"]
    await agents_in(app).memories.add(
        sayings[min(n, len(sayings) - 1)],
        tenant=session.tenant_id,
        user=session.user_id,
        source_type="session",
        source_id=session.id,
        at=at,
    )
