"""What a page's form sends: read by hand, and never more than a little."""

import math
from urllib.parse import parse_qsl

import msgspec
from fastapi import Request
from msgspec import Struct

from penstock.model.errors import InvalidOption
from penstock.server.guard import SAFE
from penstock.server.problems import Refusal

MAX_BYTES = 65_536
MAX_FIELDS = 2_000
MOST_WHOLE = 999_999_999_999
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

    def raw(self, name: str) -> str:
        """The first value as it was typed: space around a password belongs to it."""
        return next(iter(self.all(name)), "")

    def words(self, name: str, most: int) -> str | None:
        """A text of at most so many characters; none if nothing was written."""
        text = self.get(name)
        if len(text) > most:
            raise InvalidOption(name, f"{len(text):,} characters", f"at most {most:,}")
        return text or None

    def whole(self, name: str, *, least: int = 0, most: int = MOST_WHOLE) -> int | None:
        """A whole number; none if nothing was written."""
        text = self.get(name)
        if not text:
            return None
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WHOLE))
        if not plain or not least <= int(text) <= most:
            raise InvalidOption(name, text, f"a whole number from {least:,} to {most:,}")
        return int(text)

    def number(self, name: str) -> float | None:
        """A number; none if nothing was written."""
        text = self.get(name)
        try:
            found = float(text) if text else None
        except ValueError:
            found = math.nan
        if found is not None and not math.isfinite(found):
            raise InvalidOption(name, text, "a number")
        return found

    def json(self, name: str, default: str = "") -> str:
        """A document, in the fewest characters."""
        try:
            return msgspec.json.encode(msgspec.json.decode(self.get(name) or default)).decode()
        except (msgspec.DecodeError, RecursionError) as error:
            raise Refusal(422, f"This is no JSON: {error}.", field=name) from None


async def read_form(request: Request) -> Form:
    """The form of a request."""
    if request.method in SAFE:
        return Form()
    kind = request.headers.get("content-type", MEDIA_TYPE).partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise Refusal(415, f"A page takes forms only, sent as {MEDIA_TYPE}.")
    return Form(_parsed(await _body(request)))


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
