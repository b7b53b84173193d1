"""The job `mine_upload`: one step after the other, each written down before the next is taken.

    pending → ipfs_uploaded → tx_submitted → confirmed

Whoever goes on after a crash reads the row and does what is next. What was signed is in the row
before it is sent, so that the same bytes are sent again and one transaction is mined. A block that
holds it may be taken back by the chain: then it is submitted once more.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.apps.recorder.captured import QUEUE
from penstock.apps.recorder.learnings import APPROVAL, Found, Learnings, record
from penstock.apps.recorder.outbound import Away, Later, client
from penstock.apps.recorder.publish.chain import Chain, Fees, Receipt, RpcError, Signed
from penstock.apps.recorder.publish.document import cid_of, document_of
from penstock.apps.recorder.publish.kubo import Kubo
from penstock.apps.recorder.records import Learning
from penstock.apps.recorder.sanitise import Sanitiser
from penstock.events.event import NewEvent, Session
from penstock.model.ids import new_id
from penstock.model.job import KeyScope
from penstock.model.outcome import Dead
from penstock.model.redact import redact

if TYPE_CHECKING:
    from httpx import AsyncClient

    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.extension import RecorderSettings

MAX_RETRIES = 5
TIMEOUT = 60.0
BLOCK_SECONDS = 12.0
AUTOMATIC = "the settings"


class Row(Struct, frozen=True, kw_only=True):
    """How far an upload is."""

    learning_id: str
    status: str
    document: str | None
    ipfs_cid: str | None
    chain_tx_hash: str | None
    nonce: int | None
    raw_tx: str | None
    hashes: list[str]
    max_fee: int | None
    priority_fee: int | None
    block_number: int | None
    block_hash: str | None
    submitted_at: int | None

    @property
    def fees(self) -> Fees:
        """What the last transaction offers."""
        return Fees(self.max_fee or 0, self.priority_fee or 0)


def begin(tx: Any, learning_id: str, tenant_id: str, person: str | None) -> None:
    """Have an approved learning published, in this commit; it is published once."""
    from penstock.apps.recorder.jobs import mine_upload

    key = f"upload-{learning_id}"
    row = (new_id(), tenant_id, person, learning_id, MAX_RETRIES, tx.now, tx.now)
    begun = tx.recorder.run("add_upload", row)
    if not begun and tx.recorder.run("begin_again", (tx.now, learning_id)):
        key, begun = f"{key}-{tx.now}", 1
    if begun:
        tx.enqueue(
            mine_upload.options(
                key=key,
                key_scope=KeyScope.FOREVER,
                tenant=tenant_id,
                queue=QUEUE,
            ).new(learning_id=learning_id)
        )


def approve_automatically(
    app: "Penstock", tx: Any, session: Session, person: str | None, learnings: Sequence[Found]
) -> None:
    """Approve new learnings of the categories that the settings publish without asking."""
    chosen = app.extensions.settings("recorder").publish.automatic
    for found in learnings:
        if found.category in chosen:
            told = {"learning_id": found.id, "decision": "approved", "by": AUTOMATIC}
            event = NewEvent(
                event_type=APPROVAL,
                session_id=session.session_id,
                platform=session.platform,
                tenant_id=session.tenant_id,
                person=person,
                payload=told,
            )
            record(app, tx, event)
            begin(tx, found.id, session.tenant_id, person)


def revoke(tx: Any, learning: Learning, reason: str, by: str) -> None:
    """Withdraw a learning, in this commit, and have the node unpin it."""
    from penstock.apps.recorder.jobs import unpin

    cid = learning.upload.ipfs_cid if learning.upload else None
    row = (new_id(), learning.tenant_id, learning.id, cid, reason, by, tx.now)
    if tx.recorder.run("add_revocation", row):
        key = f"unpin-{learning.id}"
        tx.enqueue(unpin.options(key=key, tenant=learning.tenant_id).new(learning_id=learning.id))


async def unpin(app: "Penstock", learning_id: str) -> dict[str, Any]:
    """Have the node pin a revoked learning no longer."""
    row = await _row(app, learning_id)
    if row is None or row.ipfs_cid is None:
        return {"skipped": True, "reason": "it was not uploaded"}
    settings: RecorderSettings = app.extensions.settings("recorder")
    async with client(settings, timeout=TIMEOUT) as http:
        kubo = Kubo(settings, http, app.store.clock.monotonic())
        was_pinned = await kubo.unpin(row.ipfs_cid)
    now = app.store.clock.now()
    await app.transact(lambda tx: tx.recorder.run("unpinned", (now, learning_id)))
    return {"skipped": False, "was_pinned": was_pinned}


async def publish(app: "Penstock", learning_id: str) -> dict[str, Any]:
    """Take the next steps until the learning is confirmed, or something has to be waited for."""
    settings: RecorderSettings = app.extensions.settings("recorder")
    if not settings.publish.enabled:
        raise Later(3_600, "publishing is switched off")
    async with client(settings, timeout=TIMEOUT) as http:
        return await _publish(app, Uploader(app, settings, http, learning_id), learning_id)


async def _publish(app: "Penstock", uploader: "Uploader", learning_id: str) -> dict[str, Any]:
    while True:
        row = await _row(app, learning_id)
        if row is None:
            return {"skipped": True, "reason": "it was withdrawn"}
        if row.status == "confirmed":
            return {"skipped": False, "ipfs_cid": row.ipfs_cid, "tx_hash": row.chain_tx_hash}
        if row.status == "failed":
            return {"skipped": True, "reason": "it failed for good"}
        if row.status != "tx_submitted" and await uploader.is_revoked():
            await uploader.fail("it was revoked")
            continue
        try:
            await uploader.step(row)
        except (Away, RpcError, Later) as error:
            await uploader.note(str(error), spends=isinstance(error, RpcError))
            raise


class Uploader:
    """Takes an upload from one state to the next."""

    def __init__(
        self,
        app: "Penstock",
        settings: "RecorderSettings",
        http: "AsyncClient",
        learning_id: str,
    ) -> None:
        self._app = app
        self._settings = settings
        self._http = http
        self._publish = settings.publish
        self._id = learning_id
        self._now = app.store.clock.monotonic()

    async def step(self, row: Row) -> None:
        """Do what is next."""
        match row.status:
            case "pending":
                await self._upload(row)
            case "ipfs_uploaded":
                await self._submit(row)
            case "tx_submitted":
                await self._confirm(row)
            case _:
                pass

    async def is_revoked(self) -> bool:
        """Whether somebody has withdrawn it."""
        asked = (self._id,)
        found = await self._app.read(lambda tx: tx.recorder.row("revocation", asked))
        return found is not None

    async def note(self, problem: str, *, spends: bool) -> None:
        """Write down why it does not go on now."""
        row = (redact(problem)[:500], int(spends), self._app.store.clock.now(), self._id)
        await self._run("note_upload", row)

    async def fail(self, reason: str) -> None:
        """Give it up."""
        await self._run("fail_upload", (reason[:500], self._app.store.clock.now(), self._id))

    async def _upload(self, row: Row) -> None:
        """Put the document on IPFS; the same bytes, if that was begun before."""
        if row.document is None or row.ipfs_cid is None:
            sanitiser = Sanitiser(self._settings.rules or None)
            learning = _cleaned(await Learnings(self._app).get(self._id), sanitiser)
            if learning.status != "approved":
                await self.fail(f"it is {learning.status}")
                return
            document = document_of(learning, self._publish.license)
            frozen = (document.decode(), cid_of(document), self._app.store.clock.now(), self._id)
            await self._run("freeze_upload", frozen)
            return
        await Kubo(self._settings, self._http, self._now).add(row.document.encode(), row.ipfs_cid)
        at = self._app.store.clock.now()
        await self._run("ipfs_uploaded", (at, at, self._id))

    async def _submit(self, row: Row) -> None:
        """Sign the entry and write it down; the next step sends it."""
        chain = Chain(self._settings, self._http, self._now)
        await chain.check()
        if await self._is_settled(chain, row):
            return
        fees = chain.capped(await chain.fees())
        if fees is None:
            raise Later(10 * BLOCK_SECONDS, f"fees are over {self._publish.max_fee} gwei")
        while True:
            stored, pending = await self._stored_nonce(chain)
            nonce = max(stored or 0, pending)
            signed = await self._signed(chain, row, nonce, fees)
            if await self._write(chain, signed, nonce, stored, fees):
                await chain.send(signed.raw)
                return

    async def _stored_nonce(self, chain: Chain) -> tuple[int | None, int]:
        """The next nonce by our own count, and by the node's.

        Without uploads on their way, the node knows better: a chain may have been begun anew.
        """
        sender = (self._publish.chain_id, chain.address)
        pending = await chain.nonce()

        def work(tx: Any) -> int | None:
            stored = tx.recorder.value("next_nonce", sender)
            if stored is not None and not tx.recorder.value("on_their_way", sender):
                tx.recorder.run("set_nonce", (pending, *sender))
                return pending
            return None if stored is None else int(stored)

        return await self._app.transact(work), pending

    async def _write(
        self, chain: Chain, signed: Signed, nonce: int, stored: int | None, fees: Fees
    ) -> bool:
        """Take a nonce and write down what was signed with it; False if somebody was faster."""
        sender = (self._publish.chain_id, chain.address)

        def work(tx: Any) -> bool:
            if stored is None:
                taken = tx.recorder.run("add_sender", (*sender, nonce + 1))
            else:
                taken = tx.recorder.run("take_nonce", (nonce + 1, *sender, stored))
            if not taken:
                return False
            at = tx.now
            submitted = {
                "hash": signed.hash,
                "chain_id": self._publish.chain_id,
                "contract": self._publish.contract,
                "sender": chain.address,
                "nonce": nonce,
                "raw_tx": signed.raw,
                "hashes": encode([signed.hash]).decode(),
                "max_fee": str(fees.most),
                "priority_fee": str(fees.tip),
                "at": at,
                "learning_id": self._id,
            }
            if not tx.recorder.run("tx_signed", submitted):
                raise Later(1, "somebody else has gone on with it")
            return True

        return await self._app.transact(work)

    async def _confirm(self, row: Row) -> None:
        """See whether it is mined, deep enough, and still there; send it again if it is not."""
        chain = Chain(self._settings, self._http, self._now)
        await chain.check()
        receipt = await self._receipt(chain, row)
        if receipt is not None:
            await self._mined(chain, row, receipt)
            return
        if row.block_number is not None:
            await self._run("unmined", (self._app.store.clock.now(), self._id))
        assert row.raw_tx is not None
        assert row.nonce is not None
        deep = max(0, await chain.head() - self._publish.confirmations)
        if await chain.nonce(hex(deep)) > row.nonce:
            # Another transaction of this account has the nonce for good.
            if not await self._is_settled(chain, row):
                await self._run("sign_again", (self._app.store.clock.now(), self._id))
            return
        await chain.send(row.raw_tx)
        if await self._receipt(chain, row) is not None:
            return
        waited = self._app.store.clock.now() - (row.submitted_at or 0)
        if waited > self._publish.stuck_after * 1000:
            await self._replace(chain, row)
        raise Later(BLOCK_SECONDS, "the transaction is not mined yet")

    async def _mined(self, chain: Chain, row: Row, receipt: Receipt) -> None:
        at = self._app.store.clock.now()
        if not receipt.succeeded:
            if not await self._is_settled(chain, row):
                await self.fail(f"the registry refused it in {receipt.hash}")
            return
        mined = (receipt.hash, receipt.block_number, receipt.block_hash, at, self._id)
        if (row.block_number, row.block_hash) != (receipt.block_number, receipt.block_hash):
            await self._run("mined", mined)
        depth = await chain.head() - receipt.block_number + 1
        if depth < self._publish.confirmations:
            left = self._publish.confirmations - depth
            raise Later(left * BLOCK_SECONDS, f"{left} more blocks have to follow")
        if await chain.block_hash(receipt.block_number) != receipt.block_hash:
            await self._run("unmined", (at, self._id))
            return
        await self._run("confirmed", (at, at, self._id))

    async def _replace(self, chain: Chain, row: Row) -> None:
        """Offer more for the same nonce; every hash is kept, as any of them may be mined."""
        assert row.nonce is not None
        fees = chain.capped(row.fees.raised(await chain.fees()))
        if fees is None:
            limit = f"{self._publish.max_fee} gwei are not enough"
            raise Later(10 * BLOCK_SECONDS, f"the transaction is stuck, and {limit} to replace it")
        signed = await self._signed(chain, row, row.nonce, fees)
        hashes = encode([*row.hashes, signed.hash]).decode()
        told = (str(fees.most), str(fees.tip), self._app.store.clock.now(), self._id, row.raw_tx)
        if await self._run("replaced", (signed.hash, signed.raw, hashes, *told)):
            await chain.send(signed.raw)

    async def _signed(self, chain: Chain, row: Row, nonce: int, fees: Fees) -> Signed:
        assert row.document is not None
        assert row.ipfs_cid is not None
        hashed = hashlib.sha256(row.document.encode()).digest()
        return await chain.sign(row.ipfs_cid, hashed, self._publish.license, nonce, fees)

    async def _receipt(self, chain: Chain, row: Row) -> Receipt | None:
        """That of whichever of its transactions was mined."""
        for hashed in reversed(row.hashes):
            receipt = await chain.receipt(hashed)
            if receipt is not None:
                return receipt
        return None

    async def _is_settled(self, chain: Chain, row: Row) -> bool:
        """Whether the registry has it already: ours is as good as confirmed, another's is final."""
        assert row.ipfs_cid is not None
        entry = await chain.entry(row.ipfs_cid)
        if entry is None:
            return False
        at = self._app.store.clock.now()
        if entry.contributor == chain.address.lower():
            await self._run("confirmed", (at, at, self._id))
            return True
        await self.fail(f"{entry.contributor} has entered the same learning before")
        raise Dead(f"The registry has {row.ipfs_cid} from {entry.contributor} already.")

    async def _run(self, name: str, bindings: tuple[Any, ...]) -> int:
        def work(tx: Any) -> int:
            return int(tx.recorder.run(name, bindings))

        return await self._app.transact(work)


def _cleaned(learning: Learning, sanitiser: Sanitiser) -> Learning:
    """A learning once more through the sanitiser, as its rules are today."""
    return replace(
        learning,
        title=sanitiser.text(learning.title).text,
        content=sanitiser.text(learning.content).text,
        tags=[sanitiser.text(tag).text for tag in learning.tags],
    )


async def _row(app: "Penstock", learning_id: str) -> Row | None:
    found = await app.read(lambda tx: tx.recorder.row("upload", (learning_id,)))
    if found is None:
        return None
    told = dict(zip(Row.__struct_fields__, found, strict=True))
    told["hashes"] = decode(told["hashes"])
    for name in ("max_fee", "priority_fee"):
        told[name] = None if told[name] is None else int(told[name])
    return Row(**told)
