"""How the body of an event is kept: as it is, or compressed by zlib or zstd."""

import threading
import zlib
from enum import StrEnum
from functools import cache
from typing import Any

from penstock.model.errors import MissingExtra

SMALL = 128
"""What is smaller is kept as it is."""

MOST_BYTES = 64 << 20
"""No body is larger, whatever its header says."""


class Codec(StrEnum):
    """The way a body was compressed, kept beside it."""

    RAW = "raw"
    ZLIB = "zlib"
    ZSTD = "zstd"


def best() -> Codec:
    """The best that this installation can write."""
    try:
        _zstd()
    except MissingExtra:
        return Codec.ZLIB
    return Codec.ZSTD


def packed(body: bytes, codec: Codec) -> tuple[Codec, bytes]:
    """A body as it is kept, and how."""
    if codec is Codec.RAW or len(body) < SMALL:
        return Codec.RAW, body
    small = zlib.compress(body, 6) if codec is Codec.ZLIB else _compressor().compress(body)
    return (codec, small) if len(small) < len(body) else (Codec.RAW, body)


def unpacked(kept: bytes, codec: str) -> bytes:
    """The body as it was."""
    match Codec(codec):
        case Codec.RAW:
            return kept
        case Codec.ZLIB:
            return zlib.decompress(kept)
        case Codec.ZSTD:
            return bytes(_decompressor().decompress(kept, max_output_size=MOST_BYTES))


_per_thread = threading.local()
# A compressor is for one thread at a time.


def _compressor() -> Any:
    if not hasattr(_per_thread, "compressor"):
        _per_thread.compressor = _zstd().ZstdCompressor(level=3)
    return _per_thread.compressor


def _decompressor() -> Any:
    if not hasattr(_per_thread, "decompressor"):
        _per_thread.decompressor = _zstd().ZstdDecompressor()
    return _per_thread.decompressor


@cache
def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra("events", "zstandard") from error
    return zstandard
