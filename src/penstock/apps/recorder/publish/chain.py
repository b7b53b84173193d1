"""The chain: read over JSON-RPC, and written to by transactions that are signed here."""

import sys
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError, Struct
from msgspec.json import decode

from penstock.app.keys import read_key
from penstock.apps.recorder.outbound import Away, post
from penstock.model.errors import InvalidOption, MissingExtra, PenstockError
from penstock.model.redact import redact

if TYPE_CHECKING:
    from httpx import AsyncClient

    from penstock.apps.recorder.extension import PublishSettings, RecorderSettings

WHOM = "The chain"
GWEI = 10**9
MARGIN = 1.2
"""So much more gas than estimated a transaction may use."""
NOBODY = "0x" + "0" * 40
UPLOAD = "uploadLearning(string,bytes32,string)"
READ = "getLearning(string)"


class RpcError(PenstockError):
    """What a node would not do."""

    def __init__(self, method: str, problem: str) -> None:
        self.method = method
        self.problem = problem
        super().__init__(f"The chain refused {method}: {problem}.")


class Fees(Struct, frozen=True):
    """What is offered for each unit of gas, in wei: at most in all, and of it to the producer."""

    most: int
    tip: int

    def raised(self, now: "Fees") -> "Fees":
        """Enough for nodes to let a transaction take this one's place: an eighth more of both."""
        return Fees(
            max(now.most, self.most + self.most // 8 + 1),
            max(now.tip, self.tip + self.tip // 8 + 1),
        )


class Signed(Struct, frozen=True):
    """A transaction that only has to be sent."""

    hash: str
    raw: str


class Receipt(Struct, frozen=True):
    """Where a transaction was mined, and whether it did what it was to."""

    hash: str
    succeeded: bool
    block_number: int
    block_hash: str


class Entry(Struct, frozen=True):
    """A learning as the registry has it."""

    contributor: str
    metadata_hash: bytes


class Chain:
    """A node's JSON-RPC, the registry on its chain, and the account that writes there."""

    def __init__(self, settings: "RecorderSettings", http: "AsyncClient", now: int) -> None:
        self._publish: PublishSettings = settings.publish
        self._http = http
        self._now = now
        self._account = account_of(read_key(self._publish.key))

    @property
    def address(self) -> str:
        """Who writes."""
        return str(self._account.address)

    async def check(self) -> None:
        """Refuse a node of another chain than the settings name."""
        told = int(await self._ask("eth_chainId"), 16)
        if told != self._publish.chain_id:
            raise InvalidOption(
                "publish.chain_id", self._publish.chain_id, f"{told}, as at publish.rpc"
            )

    async def entry(self, cid: str) -> Entry | None:
        """What the registry has under an address; None if nothing."""
        data = _selector(READ) + _encoded(["string"], [cid])
        call = {"to": self._publish.contract, "data": "0x" + data.hex()}
        answer = bytes.fromhex(str(await self._ask("eth_call", call, "latest"))[2:])
        if not answer:
            expected = "the address of a LearningRegistry on this chain"
            raise InvalidOption("publish.contract", self._publish.contract, expected)
        from eth_abi.abi import decode as decoded

        [(_, contributor, _, metadata_hash, _)] = decoded(
            ["(string,address,uint256,bytes32,string)"], answer
        )
        return None if contributor == NOBODY else Entry(contributor.lower(), metadata_hash)

    async def fees(self) -> Fees:
        """What a transaction has to offer now: twice the base fee and a usual tip."""
        history = await self._ask("eth_feeHistory", "0x5", "latest", [50])
        base = int(history["baseFeePerGas"][-1], 16)
        tips = sorted(int(reward[0], 16) for reward in history.get("reward") or [] if reward)
        tip = max(GWEI // 10, tips[len(tips) // 2] if tips else GWEI)
        return Fees(2 * base + tip, tip)

    def capped(self, fees: Fees) -> Fees | None:
        """Fees within the cap of the settings; None if that is less than is needed."""
        cap = round(self._publish.max_fee * GWEI)
        return fees if fees.most <= cap else None

    async def sign(
        self, cid: str, metadata_hash: bytes, license_: str, nonce: int, fees: Fees
    ) -> Signed:
        """Sign the entry of a learning; the account must be able to pay for it."""
        data = _selector(UPLOAD) + _encoded(
            ["string", "bytes32", "string"], [cid, metadata_hash, license_]
        )
        call = {"from": self.address, "to": self._publish.contract, "data": "0x" + data.hex()}
        gas = round(MARGIN * int(await self._ask("eth_estimateGas", call), 16))
        balance = int(await self._ask("eth_getBalance", self.address, "latest"), 16)
        if balance < gas * fees.most:
            needed = f"{gas * fees.most / 1e18:.6f}"
            raise Away(WHOM, f"{self.address} has {balance / 1e18:.6f} and needs up to {needed}")
        signed = self._account.sign_transaction(
            {
                "type": 2,
                "chainId": self._publish.chain_id,
                "nonce": nonce,
                "to": _checksummed(self._publish.contract),
                "value": 0,
                "data": "0x" + data.hex(),
                "gas": gas,
                "maxFeePerGas": fees.most,
                "maxPriorityFeePerGas": fees.tip,
            }
        )
        return Signed("0x" + bytes(signed.hash).hex(), "0x" + bytes(signed.raw_transaction).hex())

    async def send(self, raw: str) -> None:
        """Send a signed transaction; one that is known already, or mined, is no error."""
        try:
            await self._ask("eth_sendRawTransaction", raw)
        except RpcError as error:
            said = error.problem.lower()
            if not any(known in said for known in _SENT_BEFORE):
                raise

    async def receipt(self, hashed: str) -> Receipt | None:
        """Where a transaction was mined; None if it was not."""
        told = await self._ask("eth_getTransactionReceipt", hashed)
        if not told or told.get("blockNumber") is None:
            return None
        number, succeeded = int(told["blockNumber"], 16), int(told["status"], 16) == 1
        return Receipt(hashed, succeeded, number, told["blockHash"])

    async def head(self) -> int:
        """The number of the last block."""
        return int(await self._ask("eth_blockNumber"), 16)

    async def block_hash(self, number: int) -> str | None:
        """The hash of the block of a number."""
        told = await self._ask("eth_getBlockByNumber", hex(number), False)
        return None if told is None else str(told["hash"])

    async def nonce(self, at: str = "pending") -> int:
        """The next nonce of the account, by what the node knows."""
        return int(await self._ask("eth_getTransactionCount", self.address, at), 16)

    async def _ask(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        reply = await post(self._http, WHOM, self._publish.rpc, now=self._now, json=body)
        try:
            told = decode(reply.content)
        except DecodeError as error:
            raise Away(WHOM, f"it answered {reply.status} with something else than JSON") from error
        if told.get("error"):
            raise RpcError(method, redact(str(told["error"].get("message", "")))[:200])
        return told.get("result")


def account_of(key: str) -> Any:
    """The account that a key opens.

    A library that signs raises the recursion limit of the whole process, and with it the depth at
    which a document would end the process instead of being refused: it is set back.
    """
    deepest = sys.getrecursionlimit()
    try:
        from eth_account import Account
    except ImportError as error:
        raise MissingExtra("publish", "eth-account") from error
    finally:
        sys.setrecursionlimit(deepest)
    return Account.from_key(key)


_SENT_BEFORE = (
    "already known",
    "already imported",
    "known transaction",
    "nonce too low",
    "underpriced",
)


def _encoded(types: list[str], values: list[Any]) -> bytes:
    from eth_abi.abi import encode

    return bytes(encode(types, values))


def _selector(signature: str) -> bytes:
    from eth_utils.crypto import keccak

    return bytes(keccak(text=signature)[:4])


def _checksummed(address: str) -> str:
    from eth_utils.address import is_address, to_checksum_address

    if not is_address(address):
        raise InvalidOption("publish.contract", address, "an address of 0x and 40 hex digits")
    return str(to_checksum_address(address))
