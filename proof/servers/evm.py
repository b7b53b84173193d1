"""A node of a chain: a real EVM (py-evm) behind JSON-RPC, with a pool of transactions that wait.

Blocks are mined when somebody says so, or at once. A transaction that offers producers less than
`least_tip` is stuck; `reorganise` takes blocks back, and their transactions wait again.
"""

import json
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import RLock, Thread
from typing import Any

_DEEPEST = sys.getrecursionlimit()
"""These libraries raise it for everybody in the process; it is set back after each."""
from eth_account import Account  # noqa: E402
from eth_account.typed_transactions.typed_transaction import TypedTransaction  # noqa: E402
from eth_utils.crypto import keccak  # noqa: E402
from hexbytes import HexBytes  # noqa: E402

sys.setrecursionlimit(_DEEPEST)

CONTRACT = Path("src/penstock/apps/recorder/publish/LearningRegistry.json")
ETHER = 10**18
GWEI = 10**9
SENDER = "0x" + "11" * 32
"""The key of an account that has what transactions cost; it is worth nothing anywhere else."""


class Refused(Exception):
    """What the node answers with an error."""


class Waiting:
    """A transaction in the pool."""

    def __init__(self, raw: str) -> None:
        told = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        self.raw = raw
        self.sender = str(Account.recover_transaction(raw))
        self.nonce = int(told["nonce"])
        self.most = int(told["maxFeePerGas"])
        self.tip = int(told["maxPriorityFeePerGas"])
        self.hash = "0x" + keccak(HexBytes(raw)).hex()


class EvmNode:
    """The chain, its pool, and the registry on it."""

    def __init__(self, *, mines: bool = True) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from eth_tester import EthereumTester, PyEVMBackend  # type: ignore[import-untyped]

            self.tester: Any = EthereumTester(PyEVMBackend())
        sys.setrecursionlimit(_DEEPEST)
        self.url = ""
        self.mines = mines
        self.least_tip = 0
        self.pool: dict[tuple[str, int], Waiting] = {}
        self.mined: dict[str, str] = {}
        """The raw transactions that were mined, by their hashes."""
        self.sent: list[str] = []
        self.chain_id = int(self.tester.backend.chain.chain_id)
        self._lock = RLock()
        self.rich = self.tester.get_accounts()[0]
        self.account = Account.from_key(SENDER)
        self.fund(self.account.address)
        self.contract = self._deploy()

    def fund(self, address: str, wei: int = 10 * ETHER) -> None:
        """Give an account something to pay with."""
        call = {"from": self.rich, "to": address, "value": wei, "gas": 21_000}
        self.tester.send_transaction({**call, "gas_price": 10 * GWEI})

    def _deploy(self) -> str:
        code = json.loads(CONTRACT.read_text())["bytecode"]
        call = {"from": self.rich, "data": code, "gas": 3_000_000, "gas_price": 10 * GWEI}
        hashed = self.tester.send_transaction(call)
        return str(self.tester.get_transaction_receipt(hashed)["contract_address"])

    @property
    def total(self) -> int:
        """How many learnings the registry has."""
        data = "0x" + keccak(text="getTotalUploads()")[:4].hex()
        call = {"from": self.rich, "to": self.contract, "data": data, "gas": 100_000}
        return int(self.tester.call(call), 16)

    def send(self, raw: str) -> str:
        """Take a transaction into the pool, by the rules of real nodes."""
        with self._lock:
            self.sent.append(raw)
            new = Waiting(raw)
            if new.hash in self.mined or new.nonce < self.tester.get_nonce(new.sender):
                raise Refused("nonce too low" if new.hash not in self.mined else "already known")
            old = self.pool.get((new.sender, new.nonce))
            if old is not None:
                if old.hash == new.hash:
                    raise Refused("already known")
                if new.most < old.most * 1.1 or new.tip < old.tip * 1.1:
                    raise Refused("replacement transaction underpriced")
            self.pool[new.sender, new.nonce] = new
            if self.mines:
                self.mine()
            return new.hash

    def mine(self, blocks: int = 1) -> None:
        """Mine what may be mined, a transaction a block, and then so many blocks in all."""
        with self._lock:
            mined = 0
            for key, waiting in sorted(self.pool.items()):
                if waiting.nonce == self.tester.get_nonce(key[0]) and waiting.tip >= self.least_tip:
                    self.tester.send_raw_transaction(waiting.raw)
                    self.mined[waiting.hash] = waiting.raw
                    del self.pool[key]
                    mined += 1
            if blocks > mined:
                self.tester.mine_blocks(blocks - mined)

    def reorganise(self, snapshot: Any) -> None:
        """Go back to a snapshot; what was mined since waits in the pool again."""
        with self._lock:
            self.tester.revert_to_snapshot(snapshot)
            for hashed, raw in list(self.mined.items()):
                try:
                    self.tester.get_transaction_receipt(hashed)
                except Exception:  # the tester's own, which has many names
                    del self.mined[hashed]
                    waiting = Waiting(raw)
                    self.pool[waiting.sender, waiting.nonce] = waiting
            # Blocks that are mined now are others than those that were taken back.
            self.tester.time_travel(self.tester.get_block_by_number("latest")["timestamp"] + 100)

    def answer(self, method: str, params: list[Any]) -> Any:
        """What the node answers to a call."""
        with self._lock:
            return _METHODS[method](self, *params)


def _fee_history(node: EvmNode, count: str, _: str, percentiles: list[int]) -> dict[str, Any]:
    base = hex(node.tester.get_block_by_number("latest")["base_fee_per_gas"])
    blocks = int(count, 16)
    tips = [[hex(max(GWEI, node.least_tip))] * len(percentiles)] * blocks
    return {"baseFeePerGas": [base] * (blocks + 1), "reward": tips, "oldestBlock": "0x0"}


def _count(node: EvmNode, address: str, at: str) -> str:
    if at != "pending":
        return hex(node.tester.get_nonce(address, "latest" if at == "latest" else int(at, 16)))
    waiting = [nonce for sender, nonce in node.pool if sender == address]
    return hex(node.tester.get_nonce(address) + len(waiting))


def _receipt(node: EvmNode, hashed: str) -> dict[str, Any] | None:
    if hashed not in node.mined:
        return None
    told = node.tester.get_transaction_receipt(hashed)
    return {
        "blockNumber": hex(told["block_number"]),
        "blockHash": told["block_hash"],
        "status": hex(told["status"]),
    }


def _block(node: EvmNode, number: str, _: bool) -> dict[str, Any] | None:
    head = node.tester.get_block_by_number("latest")["number"]
    if int(number, 16) > head:
        return None
    block = node.tester.get_block_by_number(int(number, 16))
    return {"number": number, "hash": block["hash"]}


def _call(node: EvmNode, call: dict[str, Any], _: str) -> str:
    return str(node.tester.call({"from": node.rich, "gas": 1_000_000, **call}))


def _estimate(node: EvmNode, call: dict[str, Any]) -> str:
    """So much as an entry takes at most; whether it would revert is found out by trying it."""
    try:
        _call(node, {**call, "from": node.rich}, "latest")
        return hex(400_000)
    except Exception as error:
        raise Refused(f"execution reverted: {error}") from error


_METHODS: dict[str, Callable[..., Any]] = {
    "eth_chainId": lambda node: hex(node.chain_id),
    "eth_blockNumber": lambda node: hex(node.tester.get_block_by_number("latest")["number"]),
    "eth_getBalance": lambda node, address, _: hex(node.tester.get_balance(address)),
    "eth_getTransactionCount": _count,
    "eth_getTransactionReceipt": _receipt,
    "eth_getBlockByNumber": _block,
    "eth_sendRawTransaction": lambda node, raw: node.send(raw),
    "eth_feeHistory": _fee_history,
    "eth_estimateGas": _estimate,
    "eth_call": _call,
}


@contextmanager
def evm_node(*, mines: bool = True) -> Generator[EvmNode, None, None]:
    """A node that listens on the loopback address."""
    node = EvmNode(mines=mines)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
            try:
                told["result"] = node.answer(asked["method"], asked["params"])
            except Refused as refused:
                told["error"] = {"code": -32000, "message": str(refused)}
            content = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        node.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()
