"""The dictionaries that bodies of events are compressed with."""

import pytest

from penstock.events.codec import Codec, dictionary_of, packed, unpacked
from tools import train_dictionaries
from tools.train_dictionaries import NUMBERS, SIZE, VERSION, Maker

FOREIGN = "zebra quartz violin harbour meadow copper lantern orchid thunder pebble saffron walrus"


@pytest.mark.parametrize("platform", NUMBERS)
def test_bodies_of_fresh_events_are_smaller_than_with_zlib(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(train_dictionaries, "WORDS", FOREIGN.split())
    bodies = Maker(1).events(platform, 200)
    by_zstd = [packed(body, Codec.ZSTD, platform) for body in bodies]
    by_zlib = [packed(body, Codec.ZLIB, platform) for body in bodies]
    assert sum(map(len, by_zstd)) < 0.7 * sum(map(len, by_zlib))
    assert [unpacked(kept, "zstd") for kept in by_zstd] == bodies


@pytest.mark.parametrize("platform", NUMBERS)
def test_a_platform_has_a_dictionary_with_a_number_of_its_own(platform: str) -> None:
    found = dictionary_of(platform)
    assert found is not None
    number, data = found
    assert number == NUMBERS[platform] + VERSION
    assert len(data) <= SIZE


def test_a_platform_without_a_dictionary_shares_one() -> None:
    assert dictionary_of("a platform of tomorrow") == dictionary_of("any")
