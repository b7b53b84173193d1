"""Whom the recorder may talk to: the model, the Kubo node and the chain that the settings name.

Every client that it uses is made here, asks before each request, follows no redirect and takes no
proxy from the environment. Whatever else is addressed is refused.
"""

import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from penstock.events.enrichment import Breaker
from penstock.model.errors import MissingExtra, PenstockError
from penstock.model.redact import redact

if TYPE_CHECKING:
    import httpx

    from penstock.apps.recorder.extension import RecorderSettings

PORTS = {"http": 80, "https": 443}
LONGEST_ANSWER = 4 << 20


class NotAllowed(PenstockError):
    """An address that the settings do not name."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(
            f"The recorder may not talk to {address}; it talks to the model, the Kubo node and the "
            "chain that [penstock.recorder] names and has switched on, and to nobody else."
        )


class Away(PenstockError):
    """Somebody who does not answer, or not now; `after` is how many seconds to wait, if told."""

    def __init__(self, whom: str, problem: str, after: float | None = None) -> None:
        self.whom = whom
        self.problem = problem
        self.after = after
        super().__init__(f"{whom} is away: {problem}.")


class Later(PenstockError):
    """Something that only takes time; look again after so many seconds."""

    def __init__(self, seconds: float, what: str) -> None:
        self.seconds = seconds
        self.what = what
        super().__init__(f"Waiting: {what}.")


class Origin(Struct, frozen=True):
    """Where a request goes, whatever it asks for there."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Origin | None":
        """That of an address; None if it is none for HTTP."""
        try:
            parts = urlsplit(url)
            port = parts.port or PORTS.get(parts.scheme)
        except ValueError:
            return None
        if not parts.hostname or port is None or parts.scheme not in PORTS:
            return None
        return cls(parts.scheme, parts.hostname.lower(), port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def allowed_by(settings: "RecorderSettings") -> frozenset[Origin]:
    """All that may be addressed; what is switched off may not."""
    urls = [settings.model.base_url] if settings.model.provider else []
    if settings.publish.enabled:
        urls += [settings.publish.kubo, settings.publish.rpc]
    return frozenset(origin for url in urls if (origin := Origin.of(url)) is not None)


def allowed(settings: "RecorderSettings", url: str) -> str:
    """An address, if the settings name it; NotAllowed otherwise."""
    origin = Origin.of(url)
    if origin is None or origin not in allowed_by(settings):
        raise NotAllowed(str(origin) if origin else "an address that is none for HTTP")
    return url


def asking_first(settings: "RecorderSettings") -> Callable[[Any], Awaitable[None]]:
    """A hook of an HTTP client that refuses a request before anything of it is sent."""

    async def ask(request: Any) -> None:
        allowed(settings, str(request.url))

    return ask


def client(settings: "RecorderSettings", *, timeout: float) -> "httpx.AsyncClient":
    """An HTTP client for those that the settings name."""
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra("recorder", "httpx") from error
    logging.getLogger("httpx").addFilter(_without_paths)
    return httpx.AsyncClient(
        timeout=timeout,
        verify=_certificates(),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [asking_first(settings)]},
    )


def _without_paths(record: logging.LogRecord) -> bool:
    """Have httpx log only where a request goes: the path of a node may be its key."""
    if isinstance(record.args, tuple):
        told = ((Origin.of(str(each)), each) for each in record.args)
        record.args = tuple(str(origin) if origin else each for origin, each in told)
    return True


@cache
def _certificates() -> ssl.SSLContext:
    """What others are known by; reading it takes longer than most requests."""
    return ssl.create_default_context()


class Reply(Struct, frozen=True):
    """What somebody answered."""

    status: int
    content: bytes


async def post(client: "httpx.AsyncClient", whom: str, url: str, *, now: int, **body: Any) -> Reply:
    """Post something; Away if nobody answers, or says to come later."""
    import httpx

    breaker = breaker_of(url)
    if not breaker.lets_through(now):
        raise Away(whom, "it did not answer several times in a row")
    try:
        async with client.stream("POST", url, **body) as response:
            content = await _content(response, whom)
    except (httpx.HTTPError, Away) as error:
        breaker.failed(now)
        if isinstance(error, Away):
            raise
        raise Away(whom, redact(f"{type(error).__name__}: {error}")[:200]) from error
    if response.status_code in (408, 425, 429) or response.status_code > 500:
        breaker.failed(now)
        raise Away(whom, f"it answered {response.status_code}", _retry_after(response))
    breaker.worked()
    return Reply(response.status_code, content)


async def _content(response: "httpx.Response", whom: str) -> bytes:
    """An answer, up to the size that any may have."""
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LONGEST_ANSWER:
            raise Away(whom, f"its answer is over {LONGEST_ANSWER:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _retry_after(response: "httpx.Response") -> float | None:
    told = response.headers.get("retry-after", "")
    return float(told) if told.isdigit() else None


def breaker_of(url: str) -> Breaker:
    """The breaker in front of whoever is at an address, in this process."""
    return _breakers.setdefault(Origin.of(url), Breaker())


_breakers: dict[Origin | None, Breaker] = {}
