from penstock.client.admission import TRUST_SECONDS, UNLIMITED_TRUST_SECONDS, Room


def a_room(depth: int, limit: int) -> Room:
    room = Room("mail")
    room.measured(depth, limit, now=100.0)
    return room


def test_a_room_that_was_never_measured_is_sure_of_nothing() -> None:
    assert not Room("mail").surely_has(1, now=0.0)


def test_half_of_the_room_is_trusted_for_a_second() -> None:
    room = a_room(depth=20, limit=100)
    assert room.surely_has(40, now=100.5)
    assert not room.surely_has(41, now=100.5)
    assert not room.surely_has(1, now=100.0 + TRUST_SECONDS)


def test_what_went_in_uses_up_the_trust() -> None:
    room = a_room(depth=0, limit=10)
    room.enter(5)
    assert not room.surely_has(1, now=100.0)
    assert not room.full
    room.enter(5)
    assert room.full


def test_what_is_being_written_while_somebody_measures_is_not_forgotten() -> None:
    room = a_room(depth=0, limit=4)
    room.enter(3)
    room.measured(0, 4, now=101.0)
    assert room.ahead == 3
    room.enter(1)
    assert room.full
    room.entered(4)
    room.measured(4, 4, now=102.0)
    assert room.ahead == 4


def test_near_the_limit_it_is_not_measured_every_time() -> None:
    room = a_room(depth=9_999, limit=10_000)
    assert room.surely_has(10, now=100.0)
    assert not room.surely_has(11, now=100.0)


def test_without_a_limit_there_is_always_room() -> None:
    room = a_room(depth=0, limit=0)
    room.enter(10**9)
    assert room.surely_has(10**9, now=100.0)
    assert not room.full


def test_a_room_without_a_limit_is_measured_as_seldom_as_limits_are_read() -> None:
    room = a_room(depth=0, limit=0)
    assert room.surely_has(1, now=100.0 + TRUST_SECONDS)
    assert not room.surely_has(1, now=100.0 + UNLIMITED_TRUST_SECONDS)
