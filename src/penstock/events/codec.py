"""How the body of an event is kept: as it is, or compressed by zlib or zstd."""

import threading
import zlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from penstock.model.errors import MissingExtra

LEVEL = 3
MOST_BYTES = 64 << 20
"""No body is larger, whatever its header says."""


class Codec(StrEnum):
    """The way a body was compressed, kept beside it."""

    RAW = "raw"
    ZLIB = "zlib"
    ZSTD = "zstd"
    ERASED = "erased"
    """Nothing is left of it but its place."""


class UnknownDictionary(Exception):
    """A body that was compressed with a dictionary which this version does not bring."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"dictionary {number} is not known")


def best() -> Codec:
    """The best that this installation can write."""
    try:
        _zstd()
    except MissingExtra:
        return Codec.ZLIB
    return Codec.ZSTD


def packed(body: bytes, codec: Codec, platform: str) -> bytes:
    """A body as it is kept."""
    match codec:
        case Codec.ZSTD:
            return bytes(_compressor(platform).compress(body))
        case Codec.ZLIB:
            return zlib.compress(body, 6)
        case _:
            return body


def packed_all(bodies: Sequence[bytes], codec: Codec, platform: str) -> list[bytes]:
    """Bodies of a platform as they are kept.

    Zstandard takes them in one call: between two, another thread would take Python's lock.
    """
    if codec is Codec.ZSTD and len(bodies) > 1 and _takes_many():
        together = _compressor(platform).multi_compress_to_buffer(bodies, threads=1)
        return [each.tobytes() for each in together]
    return [packed(body, codec, platform) for body in bodies]


def unpacked(kept: bytes, codec: str) -> bytes:
    """The body as it was; UnknownDictionary if it takes one that nobody has told of."""
    match codec:
        case "zstd":
            number = _zstd().get_frame_parameters(kept).dict_id
            return bytes(_decompressor(number).decompress(kept, max_output_size=MOST_BYTES))
        case "zlib":
            return zlib.decompress(kept)
        case "erased":
            return b'{"payload":{}}'
        case _:
            return kept


def dictionary_of(platform: str) -> tuple[int, bytes] | None:
    """The dictionary that bodies of a platform are compressed with, and its number."""
    found = _shipped().get(platform) or _shipped().get("any")
    return None if found is None else (found.dict_id(), found.as_bytes())


def learn(number: int, data: bytes) -> None:
    """Take in a dictionary that a log holds."""
    _learnt[number] = _zstd().ZstdCompressionDict(data)


_learnt: dict[int, Any] = {}
_per_thread = threading.local()
# A compressor is for one thread at a time.


def _compressor(platform: str) -> Any:
    made: dict[str, Any] = _per_thread.__dict__.setdefault("compressors", {})
    found = made.get(platform)
    if found is None:
        dictionary = _shipped().get(platform) or _shipped().get("any")
        found = made[platform] = _zstd().ZstdCompressor(level=LEVEL, dict_data=dictionary)
    return found


def _decompressor(number: int) -> Any:
    made: dict[int, Any] = _per_thread.__dict__.setdefault("decompressors", {})
    if number not in made:
        made[number] = _zstd().ZstdDecompressor(dict_data=_dictionary(number) if number else None)
    return made[number]


def _dictionary(number: int) -> Any:
    shipped = {each.dict_id(): each for each in _shipped().values()}
    found = shipped.get(number) or _learnt.get(number)
    if found is None:
        raise UnknownDictionary(number)
    return found


@cache
def _shipped() -> Mapping[str, Any]:
    """The dictionaries of this version, by platform; each has a number of its own for ever."""
    folder = files("penstock.events").joinpath("dictionaries")
    shipped = {
        file.name.removesuffix(".zstd"): _zstd().ZstdCompressionDict(file.read_bytes())
        for file in (folder.iterdir() if folder.is_dir() else ())
        if file.name.endswith(".zstd")
    }
    for dictionary in shipped.values():
        dictionary.precompute_compress(level=LEVEL)  # else every compressor does it for itself
    return shipped


@cache
def _takes_many() -> bool:
    """Tell whether this build of the library compresses many bodies in one call."""
    return "multi_compress_to_buffer" in _zstd().backend_features


@cache
def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra("events", "zstandard") from error
    return zstandard
