"""A path in front of all addresses, for a proxy that shares one name among several services."""

import re
from typing import TYPE_CHECKING

from starlette.routing import Match

from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

WHOLE = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def below(api: "FastAPI", path: str) -> "ASGIApp":
    """The application with all its addresses below a path; as it is, if there is none."""
    root = path.rstrip("/")
    if not root:
        return api
    if WHOLE.fullmatch(root) is None:
        raise InvalidOption("root_path", path, "a path such as /penstock")
    if any(_answers(api, f"{root}{page}") for page in ("", "/jobs")):
        raise InvalidOption("root_path", path, "a path that is no page of the server itself")
    return Prefixed(api, root)


class Prefixed:
    """Takes requests with the path in front and, from a proxy that takes it off, without it."""

    def __init__(self, app: "ASGIApp", root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on as one below the path."""
        if scope["type"] == "http":
            rest = f"{scope['path']}/".removeprefix(f"{self._root}/")
            inside = rest[:-1].lstrip("/")
            scope = {**scope, "root_path": self._root, "path": f"{self._root}/{inside}"}
        await self._app(scope, receive, send)


def _answers(api: "FastAPI", path: str) -> bool:
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
    return any(route.matches(scope)[0] is not Match.NONE for route in api.routes)
