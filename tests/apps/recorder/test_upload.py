"""Learnings are published once each, whatever is killed, stuck or taken back on the way."""

import asyncio
import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import outbound
from penstock.apps.recorder.learnings import CannotChange, Learnings
from penstock.apps.recorder.outbound import Away, Later
from penstock.apps.recorder.publish import chain, kubo
from penstock.apps.recorder.publish.document import cid_of
from penstock.apps.recorder.publish.kubo import WrongCid
from penstock.apps.recorder.publish.upload import publish
from penstock.apps.recorder.records import Learning, Upload
from penstock.model.outcome import Dead
from penstock.testing import drain
from penstock.testing.clock import FakeClock
from proof.servers.evm import GWEI, SENDER, EvmNode, evm_node
from proof.servers.kubo import KuboNode, kubo_node
from tests.apps.recorder.publishing import (
    KEY,
    a_learning,
    publish_all,
    publishing,
    recorder_app,
)
from tests.faults.support.children import Child
from tests.faults.support.facts import TORTURE
from tests.faults.support.uploading_worker import STEPS
from tests.support.places import LONG, find_place


@pytest.fixture(scope="module")
def evm_of_module() -> Iterator[EvmNode]:
    with evm_node() as node:
        yield node


@pytest.fixture
def evm(evm_of_module: EvmNode) -> Iterator[EvmNode]:
    node = evm_of_module
    node.mines, node.least_tip = True, 0
    yield node
    node.least_tip = 0
    node.mine()


@pytest.fixture
def node() -> Iterator[KuboNode]:
    with kubo_node() as node:
        yield node


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SENDER)
    monkeypatch.setattr(outbound, "_breakers", {})


async def approved(app: Penstock, title: str = "Use WAL", **told: Any) -> Learning:
    learning = await a_learning(app, title, **told)
    return await Learnings(app).approve(learning.id)


async def upload_of(app: Penstock, learning: Learning) -> Upload:
    upload = (await Learnings(app).get(learning.id)).upload
    assert upload is not None
    return upload


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_approved_learning_is_on_ipfs_and_in_the_registry(
    evm: EvmNode, node: KuboNode, kind: str, request: pytest.FixtureRequest
) -> None:
    before = evm.total
    url = find_place(kind, request).url
    async with recorder_app(url=url, publish=publishing(evm, node)) as app:
        learning = await approved(app, f"Once on {kind}")
        await drain(app)
        upload = await upload_of(app, learning)
        assert upload.status == "confirmed"
        assert upload.ipfs_cid is not None
        document = node.blocks[upload.ipfs_cid]
        assert cid_of(document) == upload.ipfs_cid
        assert upload.ipfs_cid in node.pinned
        assert evm.total == before + 1
        settings = app.extensions.settings("recorder")
        async with outbound.client(settings, timeout=5) as http:
            entry = await chain.Chain(settings, http, 0).entry(upload.ipfs_cid)
        assert entry is not None
        assert entry.contributor == evm.account.address.lower()
        assert entry.metadata_hash == hashlib.sha256(document).digest()


async def test_nothing_is_published_unless_it_is_switched_on() -> None:
    async with recorder_app() as app:
        learning = await approved(app)
        assert learning.upload is None
        assert (await drain(app)).completed == 0


async def test_categories_that_are_named_need_no_approval(evm: EvmNode, node: KuboNode) -> None:
    from penstock.apps.recorder.learn import _keep, _Whose
    from penstock.apps.recorder.learnings import Extraction, Found
    from penstock.events.event import Session

    async with recorder_app(publish=publishing(evm, node, automatic=["bug_fix"])) as app:
        found = [
            Found(category=category, title=category, content="It was so.", confidence=0.9)
            for category in ("bug_fix", "pattern")
        ]
        extraction = Extraction(version="1", outcome="x", value=1, source="", learnings=found)
        await _keep(app, _Whose("c", Session("", "cursor", "s"), None), extraction)
        listed = {each.category: each for each in await Learnings(app).list()}
        assert listed["bug_fix"].status == "approved"
        assert listed["bug_fix"].upload is not None
        assert listed["pattern"].status == "proposed"
        assert listed["pattern"].upload is None


class Killed(BaseException):
    """The process is gone."""


class Killing:
    """Kills after so many steps: commits, and requests that were answered.

    In the short form, only those requests count that change something elsewhere.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, app: Penstock, after: int) -> None:
        self.left = after
        self._transact, self._post = app.transact, outbound.post
        monkeypatch.setattr(app, "transact", self.transact)
        for module in (chain, kubo):
            monkeypatch.setattr(module, "post", self.post)

    async def transact(self, work: Any) -> Any:
        done = await self._transact(work)
        self.step()
        return done

    async def post(self, *asked: Any, **told: Any) -> Any:
        reply = await self._post(*asked, **told)
        if LONG or "add" in asked[2] or "eth_sendRaw" in str(told.get("json")):
            self.step()
        return reply

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


@pytest.mark.thorough
async def test_killed_after_any_step_it_goes_on_and_one_transaction_is_mined(
    evm: EvmNode, node: KuboNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    evm.mines = False  # what was sent waits in the pool, and the registry does not know of it
    async with recorder_app(publish=publishing(evm, node)) as app:
        for step in range(1, 100):
            learning = await approved(app, f"Killed at {step}")
            total, mined = evm.total, len(evm.mined)
            with monkeypatch.context() as patched:
                killing = Killing(patched, app, step)
                with suppress(Killed):
                    await publish_all(app, learning, evm)
            await publish_all(app, learning, evm)
            upload = await upload_of(app, learning)
            assert upload.status == "confirmed", step
            assert upload.ipfs_cid is not None
            assert cid_of(node.blocks[upload.ipfs_cid]) == upload.ipfs_cid
            assert (evm.total, len(evm.mined)) == (total + 1, mined + 1), step
            if killing.left > 0:
                break
    assert step > (15 if LONG else 7)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"] if LONG or TORTURE else ["sqlite"])
@pytest.mark.parametrize("step", STEPS if LONG or TORTURE else ["signed and written"])
@pytest.mark.thorough
async def test_what_a_killed_process_began_another_one_ends(
    evm: EvmNode, node: KuboNode, step: str, kind: str, request: pytest.FixtureRequest
) -> None:
    url, told = find_place(kind, request).url, publishing(evm, node)
    total, mined = evm.total, len(evm.mined)
    evm.mines = step in ("block written", "confirmed")  # what is sent waits otherwise

    def worker(owner: str, *more: str) -> Child:
        return Child("uploading_worker", url, json.dumps(told), owner, *more, env={KEY: SENDER})

    async with recorder_app(url=url, publish=told) as app:
        learning = await approved(app, f"Killed once {step}")
        with worker("doomed", step) as doomed:
            assert doomed.wait() == -signal.SIGKILL
        assert (await upload_of(app, learning)).status == STATUSES[step]
        evm.mines = True
        evm.mine()
        await app.store.upkeep.rescue(owner="doomed")
        if LONG or TORTURE:
            with worker("other") as other:
                assert other.wait() == 0
        else:
            await drain(app)
        upload = await upload_of(app, learning)
        assert upload.status == "confirmed"
        assert upload.ipfs_cid is not None
        assert cid_of(node.blocks[upload.ipfs_cid]) == upload.ipfs_cid
        assert upload.chain_tx_hash in evm.mined
    assert (evm.total, len(evm.mined)) == (total + 1, mined + 1)


STATUSES = {
    "document written": "pending",
    "pinned": "pending",
    "pin written": "ipfs_uploaded",
    "registry read": "ipfs_uploaded",
    "signed and written": "tx_submitted",
    "sent": "tx_submitted",
    "block written": "tx_submitted",
    "confirmed": "confirmed",
}


async def test_a_stuck_transaction_is_replaced_by_one_of_the_same_nonce(
    evm: EvmNode, node: KuboNode
) -> None:
    clock = FakeClock()
    async with recorder_app(clock, publish=publishing(evm, node, stuck_after=60)) as app:
        learning = await approved(app, "Stuck")
        evm.mines = False
        with pytest.raises(Later):
            await publish(app, learning.id)
        first = (await upload_of(app, learning)).chain_tx_hash
        evm.least_tip = 2 * GWEI
        evm.mine()
        with pytest.raises(Later, match="not mined yet"):
            await publish(app, learning.id)
        assert (await upload_of(app, learning)).chain_tx_hash == first, "it may still be mined"
        clock.advance(seconds=61)
        with pytest.raises(Later):
            await publish(app, learning.id)
        second = (await upload_of(app, learning)).chain_tx_hash
        assert second != first
        mined = len(evm.mined)
        evm.mine()
        await publish(app, learning.id)
        upload = await upload_of(app, learning)
        assert (upload.status, upload.chain_tx_hash) == ("confirmed", second)
        assert len(evm.mined) == mined + 1


async def test_the_one_that_was_replaced_may_be_mined_all_the_same(
    evm: EvmNode, node: KuboNode
) -> None:
    clock = FakeClock()
    async with recorder_app(clock, publish=publishing(evm, node, stuck_after=60)) as app:
        learning = await approved(app, "Replaced in vain")
        evm.mines = False
        with pytest.raises(Later):
            await publish(app, learning.id)
        first = (await upload_of(app, learning)).chain_tx_hash
        [old] = evm.pool.values()
        clock.advance(seconds=61)
        with pytest.raises(Later):
            await publish(app, learning.id)
        evm.pool = {(old.sender, old.nonce): old}
        evm.mine()
        await publish(app, learning.id)
        upload = await upload_of(app, learning)
        assert (upload.status, upload.chain_tx_hash) == ("confirmed", first)


async def test_no_more_than_the_cap_is_ever_offered(evm: EvmNode, node: KuboNode) -> None:
    async with recorder_app(publish=publishing(evm, node, max_fee=0.5)) as app:
        learning = await approved(app, "Dear")
        with pytest.raises(Later, match=r"over 0\.5 gwei"):
            await publish(app, learning.id)
        assert (await upload_of(app, learning)).status == "ipfs_uploaded"


async def test_a_block_that_is_taken_back_is_no_confirmation(evm: EvmNode, node: KuboNode) -> None:
    async with recorder_app(publish=publishing(evm, node, confirmations=3)) as app:
        learning = await approved(app, "Reorganised")
        snapshot = evm.tester.take_snapshot()
        with pytest.raises(Later, match="2 more blocks"):
            await publish(app, learning.id)
        mined_in = await upload_of(app, learning)
        assert mined_in.block_number is not None
        evm.mines = False
        evm.reorganise(snapshot)
        with pytest.raises(Later, match="not mined yet"):
            await publish(app, learning.id)
        assert (await upload_of(app, learning)).block_number is None
        before = evm.total
        evm.mine(2)
        await publish_all(app, learning, evm)
        upload = await upload_of(app, learning)
        assert (upload.status, upload.chain_tx_hash) == ("confirmed", mined_in.chain_tx_hash)
        assert evm.total == before + 1


async def test_a_transaction_that_the_chain_forgot_is_sent_again(
    evm: EvmNode, node: KuboNode
) -> None:
    async with recorder_app(publish=publishing(evm, node)) as app:
        learning = await approved(app, "Forgotten")
        evm.mines = False
        with pytest.raises(Later):
            await publish(app, learning.id)
        first = (await upload_of(app, learning)).chain_tx_hash
        evm.pool.clear()
        with pytest.raises(Later):
            await publish(app, learning.id)
        assert [each.hash for each in evm.pool.values()] == [first]


async def test_what_somebody_else_has_entered_is_given_up_for_good(
    evm: EvmNode, node: KuboNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "0x" + "22" * 32
    settings = publishing(evm, node)
    clock = FakeClock()
    async with recorder_app(clock, publish=settings) as app:
        await publish_all(app, await approved(app, "Theirs"), evm)
    evm.fund(evm_address(other))
    monkeypatch.setenv(KEY, other)
    sent = len(evm.sent)
    async with recorder_app(clock, publish=settings) as app:
        learning = await approved(app, "Theirs")
        with pytest.raises(Dead, match=r"already"):
            await publish(app, learning.id)
        upload = await upload_of(app, learning)
        assert upload.status == "failed"
        assert "has entered the same learning" in str(upload.last_error)
    assert len(evm.sent) == sent, "nothing was paid for it"


def evm_address(key: str) -> str:
    return str(chain.account_of(key).address)


def test_the_library_that_signs_leaves_the_recursion_limit_as_it_was() -> None:
    script = (
        "import sys; before = sys.getrecursionlimit()\n"
        "from penstock.apps.recorder.publish.chain import account_of\n"
        "account_of('0x' + '11' * 32)\n"
        "assert sys.getrecursionlimit() == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_uploads_at_the_same_time_take_nonces_of_their_own(
    evm: EvmNode, node: KuboNode
) -> None:
    before = evm.total
    async with recorder_app(publish=publishing(evm, node)) as app:
        some = [await approved(app, f"At once {n}") for n in range(2)]
        evm.mines = False

        async def begun(learning: Learning) -> None:
            with pytest.raises(Later):
                await publish(app, learning.id)

        await asyncio.gather(*map(begun, some))
        nonces = [each.nonce for each in evm.pool.values()]
        assert len(set(nonces)) == 2
        for learning in some:
            await publish_all(app, learning, evm)
    assert evm.total == before + 2


async def test_a_node_that_names_another_address_publishes_nothing(
    evm: EvmNode, node: KuboNode
) -> None:
    node.lies = True
    async with recorder_app(publish=publishing(evm, node)) as app:
        learning = await approved(app, "Lied about")
        with pytest.raises(WrongCid):
            await publish(app, learning.id)
        assert (await upload_of(app, learning)).status == "pending"


async def test_while_somebody_is_away_the_job_waits_and_spends_no_attempt(
    evm: EvmNode, node: KuboNode
) -> None:
    clock = FakeClock()
    node.refuses = 503
    async with recorder_app(clock, publish=publishing(evm, node)) as app:
        learning = await approved(app, "Offline")
        for _ in range(8):
            await drain(app)
            clock.advance(seconds=6 * 3600)
        upload = await upload_of(app, learning)
        assert upload.status == "pending"
        assert "is away" in str(upload.last_error)
        node.refuses = 0
        clock.advance(seconds=6 * 3600)
        await drain(app)
        assert (await upload_of(app, learning)).status == "confirmed"


async def test_a_chain_of_another_id_is_refused(evm: EvmNode, node: KuboNode) -> None:
    async with recorder_app(publish=publishing(evm, node, chain_id=1)) as app:
        learning = await approved(app, "Elsewhere")
        with pytest.raises(Exception, match="chain_id"):
            await publish(app, learning.id)
        assert (await upload_of(app, learning)).status == "ipfs_uploaded"


async def test_an_account_without_money_waits(
    evm: EvmNode, node: KuboNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "0x" + "33" * 32)
    async with recorder_app(publish=publishing(evm, node)) as app:
        learning = await approved(app, "Poor")
        with pytest.raises(Away, match="needs up to"):
            await publish(app, learning.id)


async def test_what_is_published_can_be_revoked_but_no_longer_edited(
    evm: EvmNode, node: KuboNode
) -> None:
    async with recorder_app(publish=publishing(evm, node)) as app:
        learning = await approved(app, "Withdrawn")
        await publish_all(app, learning, evm)
        learnings = Learnings(app)
        with pytest.raises(CannotChange, match="published as it is"):
            await learnings.edit(learning.id, title="Other")
        with pytest.raises(CannotChange, match="revoke it instead"):
            await learnings.reject(learning.id)
        assert node.pinned
        revoked = await learnings.revoke(learning.id, "it names a customer")
        assert revoked.upload is not None
        assert revoked.upload.revoked_at is not None
        await drain(app)
        assert not node.pinned


async def test_a_revoked_learning_goes_no_further(evm: EvmNode, node: KuboNode) -> None:
    before = evm.total
    async with recorder_app(publish=publishing(evm, node)) as app:
        learning = await approved(app, "Called back")
        await Learnings(app).revoke(learning.id)
        await drain(app)
        assert (await upload_of(app, learning)).status == "failed"
    assert evm.total == before
    assert not node.blocks


async def test_a_rejected_learning_that_is_approved_again_is_published(
    evm: EvmNode, node: KuboNode
) -> None:
    async with recorder_app(publish=publishing(evm, node)) as app:
        learning = await approved(app, "On second thoughts")
        await Learnings(app).reject(learning.id)
        await drain(app)
        assert (await upload_of(app, learning)).status == "failed"
        await Learnings(app).approve(learning.id)
        await drain(app)
        assert (await upload_of(app, learning)).status == "confirmed"
