import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model import clock as clock_module
from penstock.model.clock import Clock, SystemClock, from_iso, iso
from penstock.model.errors import InvalidOption
from penstock.testing.clock import FakeClock

YEAR_1_MS = -62_135_596_800_000
YEAR_9999_MS = 253_402_300_799_999


@given(st.integers(YEAR_1_MS, YEAR_9999_MS))
def test_iso_and_from_iso_are_inverse(ms: int) -> None:
    assert from_iso(iso(ms)) == ms


def test_iso_writes_utc_with_milliseconds_and_z() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_794_713_280_123) == "2026-11-15T03:28:00.123Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T03:28:00Z",
        "2026-11-15T03:28:00.000Z",
        "2026-11-15T05:28:00+02:00",
        "2026-11-14T22:28:00.000999-05:00",
    ],
)
def test_from_iso_tolerates_offsets_and_missing_milliseconds(text: str) -> None:
    assert iso(from_iso(text)) == "2026-11-15T03:28:00.000Z"


@pytest.mark.parametrize("text", ["", "soon", "2026-11-15T03:28:00", "2026-13-01T00:00:00Z"])
def test_a_time_that_is_not_iso_with_an_offset_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidOption, match="such as 2026-11-15T03:28:00Z"):
        from_iso(text)


@pytest.mark.parametrize("ms", [YEAR_9999_MS + 1, YEAR_1_MS - 1, 10**30])
def test_iso_refuses_what_no_calendar_holds(ms: int) -> None:
    with pytest.raises(InvalidOption, match="years 1 to 9999"):
        iso(ms)


def test_the_system_clock_reads_the_hosts_clocks() -> None:
    clock: Clock = SystemClock()
    before = time.time_ns() // 1_000_000
    assert clock.now() >= before
    assert clock.monotonic() <= clock.monotonic()


def test_the_boot_id_is_the_same_for_every_clock_of_a_boot() -> None:
    assert SystemClock().boot_id == SystemClock().boot_id != ""


def test_a_host_that_names_no_boot_gets_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "_linux_boot_id", lambda: None)
    monkeypatch.setattr(clock_module, "_macos_boot_id", lambda: None)
    monkeypatch.setattr(time, "time", lambda: 6_000.0)
    monkeypatch.setattr(time, "monotonic", lambda: 1_190.0)
    assert SystemClock().boot_id == "booted-at-minute-80"


def test_a_fake_clock_stands_still_until_it_is_advanced() -> None:
    clock: Clock = (fake := FakeClock())
    assert iso(clock.now()) == "2026-01-01T00:00:00.000Z"
    fake.advance(seconds=1.5)
    assert iso(clock.now()) == "2026-01-01T00:00:01.500Z"
    assert clock.monotonic() == 1_500


def test_setting_the_wall_clock_leaves_the_monotonic_clock_alone() -> None:
    clock = FakeClock()
    clock.advance(seconds=10)
    clock.set_wall("2025-12-31T23:00:00Z")
    assert iso(clock.now()) == "2025-12-31T23:00:00.000Z"
    assert clock.monotonic() == 10_000


def test_a_reboot_changes_the_boot_id_and_restarts_the_monotonic_clock() -> None:
    clock = FakeClock(start=5)
    clock.advance(seconds=10)
    first = clock.boot_id
    clock.reboot()
    assert clock.boot_id != first
    assert (clock.monotonic(), clock.now()) == (0, 10_005)


def test_time_cannot_pass_backwards() -> None:
    with pytest.raises(InvalidOption, match="set_wall"):
        FakeClock().advance(seconds=-1)
