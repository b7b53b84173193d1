"""What a page's form sends: read by hand, and never more than a little."""

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from msgspec import Struct

from penstock.server.access.guard import SAFE
from penstock.server.problems import Refusal

MAX_BYTES = 65_536
MAX_FIELDS = 2_000
CSRF_FIELD = "csrf"
MEDIA_TYPE = "application/x-www-form-urlencoded"


class Form(Struct, frozen=True):
    """Names and values in the order they came."""

    fields: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field, without the space around it."""
        return next((value.strip() for key, value in self.fields if key == name), default)

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value for key, value in self.fields if key == name]

    def given(self) -> Iterator[tuple[str, str]]:
        """The fields that somebody filled in, without the page's token."""
        for name, value in self.fields:
            if name != CSRF_FIELD and value.strip():
                yield name, value.strip()


async def read_form(request: Request) -> Form:
    """The form of a request; its token is left where the guard looks for it."""
    if request.method in SAFE:
        return Form()
    kind = request.headers.get("content-type", MEDIA_TYPE).partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise Refusal(415, f"A page takes forms only, sent as {MEDIA_TYPE}.")
    form = Form(_parsed(await _body(request)))
    request.state.csrf = form.get(CSRF_FIELD) or None
    return form


Sent = Annotated[Form, Depends(read_form)]
"""The form a page was sent."""


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BYTES:
            raise Refusal(413, f"A form may hold at most {MAX_BYTES:,} bytes.")
    return bytes(body)


def _parsed(body: bytes) -> tuple[tuple[str, str], ...]:
    try:
        found = tuple(
            parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"
            )
        )
    except ValueError:
        raise Refusal(400, "The form cannot be read; send it again from the page.") from None
    if any("\0" in text for pair in found for text in pair):
        raise Refusal(400, "A form cannot hold a NUL character.")
    return found
