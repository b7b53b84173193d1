"""Addresses, assets, headers and cookies below wherever the server is mounted."""

import gzip
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Query, Request
from msgspec import DecodeError, Struct
from msgspec.json import decode, encode
from starlette.responses import Response

from penstock.server.access.identity import same
from penstock.server.problems import Refusal

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

SECURITY: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
)
"""Sent with every answer of the dashboard."""

FRESH = "no-store"
"""Pages show other people's work: neither a proxy nor the back button of the next user keeps it."""

LASTING = "public, max-age=31536000, immutable"
"""For files whose address changes with their content."""


FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@cache
def files() -> dict[str, Path]:
    """Every file that may be asked for, by its name below the folder."""
    return {
        path.relative_to(FOLDER).as_posix(): path
        for path in FOLDER.rglob("*")
        if path.suffix in TYPES
    }


@cache
def content_of(name: str) -> tuple[bytes, str]:
    """A file, and a hash that names this version of it."""
    content = files()[name].read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:12]


@cache
def packed(name: str) -> bytes:
    """A file in fewer bytes, for browsers that unpack it."""
    return gzip.compress(content_of(name)[0], mtime=0)


def has(name: str) -> bool:
    """Whether a file was shipped; the browser's libraries may not have been."""
    return name in files()


@router.get("/static/{name:path}")
async def asset(
    request: Request, name: str, v: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """One of the files; everybody may have them."""
    if not has(name):
        raise Refusal(404, "There is no such file.")
    content, version = content_of(name)
    kept = LASTING if v == version else "no-cache"
    headers = {**SECURITY, "Cache-Control": kept, "ETag": f'"{version}"'}
    headers["Vary"] = "Accept-Encoding"
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = packed(name)
        headers |= {"Content-Encoding": "gzip", "ETag": f'"{version}-gzip"'}
    return Response(content, headers=headers, media_type=TYPES[Path(name).suffix])


class Links:
    """The addresses of one request's mount."""

    def __init__(self, request: Request) -> None:
        self.root = str(request.scope.get("root_path", "")).rstrip("/")
        self._request = request

    def url(self, path: str, **query: Any) -> str:
        """A page's address: `url("jobs", status="failed")`; what is None or empty is left out."""
        given = {name: value for name, value in query.items() if value not in (None, "", [])}
        asked = f"?{urlencode(given, doseq=True)}" if given else ""
        return f"{self.root}/{path}{asked}"

    def asset(self, name: str) -> str:
        """The address of a style, a script or a picture, as it is now."""
        return self.url(f"static/{name}", v=content_of(name)[1] if has(name) else "")

    def inside(self, address: str) -> str | None:
        """The path of a page of ours that an address leads to; none if it leads elsewhere."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        if not parts.path.startswith(f"{self.root}/") or parts.path.startswith("//"):
            return None
        path = parts.path.removeprefix(f"{self.root}/").lstrip("/\\")
        return f"{path}?{parts.query}" if parts.query else path

    def names(self) -> dict[str, Any]:
        """What templates call."""
        return {"url": self.url, "asset": self.asset, "has": has}

    def keep(
        self,
        answer: Response,
        cookie: str,
        value: str,
        seconds: int,
        *,
        path: str = "",
        samesite: Literal["lax", "strict"] = "strict",
    ) -> None:
        """Have the browser send a value back, to pages below the path, and show it to no script."""
        answer.set_cookie(
            cookie,
            value,
            max_age=seconds,
            path=self.url(path),
            httponly=True,
            samesite=samesite,
            secure=self._request.url.scheme == "https",
        )

    def drop(self, answer: Response, cookie: str, path: str = "") -> None:
        """Have the browser forget a value."""
        answer.delete_cookie(cookie, path=self.url(path))


COOKIE = "penstock_flash"
SECONDS = 60
LONGEST = 1_000


class Flash(Struct, frozen=True):
    """What became of an action; `bad` if it was refused."""

    text: str
    bad: bool = False


def written(flash: Flash, key: str) -> str:
    """What to say, as the value of a cookie."""
    short = Flash(flash.text[:LONGEST], flash.bad)
    body = urlsafe_b64encode(encode(short)).decode()
    return f"{body}.{_seal(body, key)}"


def read(value: str, key: str) -> Flash | None:
    """What a cookie says, if this key wrote it."""
    body, _, seal = value.partition(".")
    if not same(seal, _seal(body, key)):
        return None
    try:
        return decode(urlsafe_b64decode(body), type=Flash)
    except (DecodeError, ValueError):
        return None


def _seal(body: str, key: str) -> str:
    return hmac.new(key.encode(), f"flash:{body}".encode(), hashlib.sha256).hexdigest()
