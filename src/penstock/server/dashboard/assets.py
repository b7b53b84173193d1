"""Styles and scripts out of the package, each under an address that changes with its content."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from penstock.server.dashboard.headers import LASTING, SECURITY
from penstock.server.problems import Refusal

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


def has(name: str) -> bool:
    """Whether a file was shipped; the browser's libraries may not have been."""
    return name in files()


@router.get("/static/{name:path}")
async def asset(name: str, v: Annotated[str, Query(max_length=64)] = "") -> Response:
    """One of the files; everybody may have them."""
    if not has(name):
        raise Refusal(404, "There is no such file.")
    content, version = content_of(name)
    kept = LASTING if v == version else "no-cache"
    headers = {**SECURITY, "Cache-Control": kept, "ETag": f'"{version}"'}
    return Response(content, headers=headers, media_type=TYPES[Path(name).suffix])
