from penstock.app.admission import TRUST_SECONDS, UNLIMITED_TRUST_SECONDS, Capacity


def a_room(depth: int, limit: int) -> Capacity:
    capacity = Capacity("mail")
    capacity.measured(depth, limit, now=100.0)
    return capacity


def test_a_room_that_was_never_measured_is_sure_of_nothing() -> None:
    assert not Capacity("mail").surely_has(1, now=0.0)


def test_half_of_the_room_is_trusted_for_a_second() -> None:
    capacity = a_room(depth=20, limit=100)
    assert capacity.surely_has(40, now=100.5)
    assert not capacity.surely_has(41, now=100.5)
    assert not capacity.surely_has(1, now=100.0 + TRUST_SECONDS)


def test_what_went_in_uses_up_the_trust() -> None:
    capacity = a_room(depth=0, limit=10)
    capacity.enter(5)
    assert not capacity.surely_has(1, now=100.0)
    assert not capacity.full
    capacity.enter(5)
    assert capacity.full


def test_what_is_being_written_while_somebody_measures_is_not_forgotten() -> None:
    capacity = a_room(depth=0, limit=4)
    capacity.enter(3)
    capacity.measured(0, 4, now=101.0)
    assert capacity.ahead == 3
    capacity.enter(1)
    assert capacity.full
    capacity.entered(4)
    capacity.measured(4, 4, now=102.0)
    assert capacity.ahead == 4


def test_near_the_limit_it_is_not_measured_every_time() -> None:
    capacity = a_room(depth=9_999, limit=10_000)
    assert capacity.surely_has(10, now=100.0)
    assert not capacity.surely_has(11, now=100.0)


def test_without_a_limit_there_is_always_room() -> None:
    capacity = a_room(depth=0, limit=0)
    capacity.enter(10**9)
    assert capacity.surely_has(10**9, now=100.0)
    assert not capacity.full


def test_a_room_without_a_limit_is_measured_as_seldom_as_limits_are_read() -> None:
    capacity = a_room(depth=0, limit=0)
    assert capacity.surely_has(1, now=100.0 + TRUST_SECONDS)
    assert not capacity.surely_has(1, now=100.0 + UNLIMITED_TRUST_SECONDS)
