"""The Kubo node: documents are added and pinned over its RPC, and its answers are checked."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from msgspec import DecodeError
from msgspec.json import decode

from penstock.apps.recorder.outbound import Away, Reply, post
from penstock.model.errors import PenstockError
from penstock.model.redact import redact

if TYPE_CHECKING:
    from httpx import AsyncClient

    from penstock.apps.recorder.extension import RecorderSettings

WHOM = "The Kubo node"
ADD = {
    "cid-version": "1",
    "raw-leaves": "true",
    "hash": "sha2-256",
    "chunker": "size-262144",
    "pin": "true",
}


class WrongCid(PenstockError):
    """A node that says another address than the one that a document has."""

    def __init__(self, told: str, computed: str) -> None:
        self.told = told
        self.computed = computed
        super().__init__(
            f"The Kubo node says that the document is {told}, but it is {computed}; nothing was "
            "published. Look at the node's settings for adding files."
        )


class Kubo:
    """A node's RPC, as the settings name it."""

    def __init__(self, settings: "RecorderSettings", http: "AsyncClient", now: int) -> None:
        self._url = settings.publish.kubo.rstrip("/")
        self._http = http
        self._now = now

    async def add(self, document: bytes, cid: str) -> None:
        """Add a document and pin it; WrongCid unless the node has it under its address."""
        files = {"file": ("learning.json", document, "application/json")}
        reply = await self._post("add", ADD, files=files)
        lines = [decode(line) for line in reply.content.splitlines() if line.strip()]
        told = str(lines[-1].get("Hash", "")) if lines else ""
        if told != cid:
            raise WrongCid(told or "nothing", cid)
        await self._post("pin/add", {"arg": cid})
        pinned = decode((await self._post("pin/ls", {"arg": cid})).content)
        if cid not in pinned.get("Keys", {}):
            raise Away(WHOM, f"it does not pin {cid} yet")

    async def unpin(self, cid: str) -> bool:
        """Pin a document no longer; whether it was pinned."""
        try:
            await self._post("pin/rm", {"arg": cid})
        except _Refused as refused:
            if "not pinned" in refused.problem:
                return False
            raise
        return True

    async def _post(self, path: str, asked: dict[str, str], **body: Any) -> Reply:
        url = f"{self._url}/api/v0/{path}?{urlencode(asked)}"
        reply = await post(self._http, WHOM, url, now=self._now, **body)
        if reply.status != 200:
            raise _Refused(path, reply.status, _message(reply.content))
        return reply


class _Refused(PenstockError):
    """What the node would not do."""

    def __init__(self, path: str, status: int, problem: str) -> None:
        self.path = path
        self.status = status
        self.problem = problem
        super().__init__(f"The Kubo node refused {path} ({status}): {problem}.")


def _message(content: bytes) -> str:
    try:
        told = decode(content)
    except DecodeError:
        told = content.decode("utf-8", "replace")
    said = told.get("Message", "") if isinstance(told, dict) else told
    return redact(str(said))[:200]
