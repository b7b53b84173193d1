"""Addresses and cookies below wherever the server is mounted."""

from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

from fastapi import Request
from starlette.responses import Response

from penstock.server.dashboard import assets


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
        return self.url(f"static/{name}", v=assets.content_of(name)[1] if assets.has(name) else "")

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
        return {"url": self.url, "asset": self.asset, "has": assets.has}

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
