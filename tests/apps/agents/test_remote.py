"""`remote.agents`: a program on another machine sees and does what one beside the store would."""

import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, connect
from penstock.apps.agents.learning.learning import Learning
from penstock.apps.agents.maintenance.deletion import Deletions
from penstock.apps.agents.maintenance.exports import Exports
from penstock.apps.agents.maintenance.quotas import Quotas
from penstock.apps.agents.memory.memories import Memories
from penstock.apps.agents.memory.records import MemoryFilter, NewMemory
from penstock.apps.agents.remote import (
    RemoteDeletions,
    RemoteExports,
    RemoteLearning,
    RemoteMemories,
    RemoteQuotas,
    RemoteSessions,
    RemoteWebhooks,
)
from penstock.apps.agents.sessions.records import NewTurn, SessionFilter
from penstock.apps.agents.sessions.sessions import Sessions
from penstock.apps.agents.webhooks.webhooks import Webhooks
from penstock.model.not_found import NotFound
from penstock.remote.client import Remote
from penstock.server.app import create_server
from penstock.testing import drain
from tests.apps.agents.furnish import TENANT, Receiver, furnish
from tests.apps.agents.serving import receiver, settings  # noqa: F401
from tests.support.http_server import serving

HERE_ONLY = {
    "archives": "it lists files of that machine",
    "by": "a caller is who its token says",
    "consolidate": "`remote.agents.enqueue` does it",
    "counts": "a figure of the page",
    "delivery": "`deliveries` has all of it",
    "get_many": "`get` asks for one",
    "is_about": "it needs the installation's key",
    "log": "it writes",
    "path": "a file of that machine",
    "publish_in": "it needs the transaction",
    "secrets": "they never leave the machine",
    "send": "POST /api/agents/webhooks/ID/send does it",
    "subscribe": "`change` replaces topics",
    "succeeded": "a session tells of it",
    "unsubscribe": "`change` replaces topics",
}
PAIRS = [
    (Memories, RemoteMemories),
    (Sessions, RemoteSessions),
    (Learning, RemoteLearning),
    (Webhooks, RemoteWebhooks),
    (Quotas, RemoteQuotas),
    (Exports, RemoteExports),
    (Deletions, RemoteDeletions),
]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


def make(url: str, folder: Path) -> Penstock:
    return Penstock(url, extensions=["events", "agents"], settings=settings(folder))


@pytest.fixture
def address(url: str, tmp_path: Path) -> Iterator[str]:
    with serving(create_server(make(url, tmp_path), trusts_callers=True)) as found:
        yield found.replace("localhost", "127.0.0.1")


@pytest.fixture
async def app(url: str, address: str, tmp_path: Path) -> AsyncIterator[Penstock]:
    async with make(url, tmp_path) as made:
        yield made


@pytest.fixture
async def remote(address: str) -> AsyncIterator[Remote]:
    async with connect(address, patience=5) as found:
        yield found


@pytest.mark.parametrize(("local", "far"), PAIRS)
def test_what_can_be_done_here_can_be_done_from_afar_or_there_is_a_reason(
    local: type, far: type
) -> None:
    mine, theirs = (
        {name for name in vars(each) if not name.startswith("_")} for each in (local, far)
    )
    assert mine - theirs <= HERE_ONLY.keys()
    assert theirs <= mine
    for name in mine & theirs:
        assert inspect.iscoroutinefunction(vars(far)[name]), name


async def test_everything_is_the_same_from_afar(
    app: Penstock,
    remote: Remote,
    receiver: Receiver,  # noqa: F811
) -> None:
    have = await furnish(app, receiver.url)
    here, there = app.agents, remote.agents
    where = MemoryFilter(tenant=TENANT, current=True)
    assert await there.memories.list(where) == await here.memories.list(where)
    assert await there.memories.get(have.merged) == await here.memories.get(have.merged)
    graph = await here.memories.graph([have.merged], depth=2)
    far = await there.memories.graph([have.merged], depth=2)
    assert {each.id for each in far.memories} == {each.id for each in graph.memories}
    assert await there.memories.edges(have.merged) == await here.memories.edges(have.merged)
    assert await there.sessions.list(SessionFilter(tenant=TENANT)) == await here.sessions.list()
    assert await there.sessions.turns(have.session) == await here.sessions.turns(have.session)
    assert await there.learning.patterns(active=True) == await here.learning.patterns()
    assert await there.learning.trajectories() == await here.learning.trajectories()
    assert await there.webhooks.list(tenant=TENANT) == await here.webhooks.list()
    assert await there.webhooks.deliveries(have.webhook) == await here.webhooks.deliveries(
        have.webhook
    )
    assert (await there.webhooks.statistics(have.webhook)).succeeded == 1
    assert await there.quotas.list() == await here.quotas.list()
    assert await there.quotas.usage(TENANT) == await here.quotas.usage(TENANT)
    assert await there.exports.list(TENANT) == await here.exports.list()
    with pytest.raises(NotFound):
        await there.memories.get("nobody")


async def test_memories_are_kept_from_afar(app: Penstock, remote: Remote) -> None:
    there = remote.agents.memories
    new = NewMemory(content="Ada lives in Turin.", user_id="ada", at=1_700_000_000_000)
    [added] = await there.add_many([new], tenant=TENANT)
    assert added.memory.valid_from == 1_700_000_000_000
    other = (await there.add("Ada owns a boat.", tenant=TENANT, user="ada")).memory
    [found, *_] = await there.search("her home town", tenant=TENANT, user="ada", k=1)
    assert found.memory.id == added.memory.id
    assert (await there.edit(other.id, content="Ada owns a ship.")).content == "Ada owns a ship."
    edge = await there.link(added.memory.id, other.id)
    assert edge.edge_type == "related_to"
    assert await there.unlink(added.memory.id, other.id, "related_to")
    merged = await there.merge([added.memory.id, other.id], content="Ada has a ship in Turin.")
    await there.delete(merged.id)
    assert len(await app.agents.memories.list()) == 2


async def test_sessions_patterns_and_webhooks_are_worked_from_afar(
    app: Penstock,
    remote: Remote,
    receiver: Receiver,  # noqa: F811
) -> None:
    sessions, learning = remote.agents.sessions, remote.agents.learning
    session = await sessions.open(tenant=TENANT, user="ada", session_id="s1")
    await sessions.add("s1", NewTurn(role="user", content="Book a table"))
    assert (await sessions.close("s1")).status == "closed"
    assert (await sessions.get("s1")).started_at == session.started_at
    assert await learning.match("Book a table", tenant=TENANT) == []
    assert await learning.predict("Book a table", tenant=TENANT) is None
    webhooks = remote.agents.webhooks
    made = await webhooks.add(receiver.url, topics=["a.b"], tenant=TENANT, owner="ada")
    assert made.secret.startswith("whsec_")
    await webhooks.test(made.webhook.id)
    assert len(await webhooks.publish("a.b", {"n": 1}, tenant=TENANT)) == 1
    await drain(app)
    [delivery, *_] = await webhooks.deliveries(made.webhook.id, before=1 << 42)
    await webhooks.replay(delivery.id)
    assert await webhooks.replay_span(made.webhook.id, since=0, delivered=True) == 2
    assert (await webhooks.change(made.webhook.id, topics=["c"])).topics == ("c",)
    assert await webhooks.rotate(made.webhook.id) != made.secret
    assert not (await webhooks.disable(made.webhook.id)).is_enabled
    assert (await webhooks.enable(made.webhook.id)).is_enabled
    await webhooks.delete(made.webhook.id)
    assert await webhooks.list() == []


async def test_quotas_exports_and_deletions_are_worked_from_afar(
    app: Penstock, remote: Remote
) -> None:
    there = remote.agents
    quota = await there.quotas.set(TENANT, "jobs", 7, action="warn")
    assert quota == (await app.agents.quotas.list())[0]
    assert await there.quotas.remove(TENANT, "jobs")
    await there.memories.add("Ada lives in Turin.", tenant=TENANT)
    await there.enqueue("data-export", {}, tenant=TENANT)
    await drain(app)
    [export] = await there.exports.list()
    assert await there.exports.get(export.id) == export
    await there.exports.delete(export.id)
    await there.deletions.request(tenant=TENANT)
    await drain(app)
    [done] = await there.deletions.list()
    assert done.certificate is not None
    assert await there.deletions.get(done.id) == done
    assert await there.deletions.verify(done.certificate)
