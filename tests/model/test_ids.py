import os
import threading
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import InvalidOption
from penstock.model.ids import IdSource, id_prefix, id_time_ms, is_id, new_id, new_ids

LAST_MS = 2**48 - 1
TIMES = st.integers(0, LAST_MS)


@given(TIMES)
def test_an_id_tells_the_millisecond_it_was_made(ms: int) -> None:
    ulid = IdSource().new_id(ms)
    assert is_id(ulid)
    assert id_time_ms(ulid) == ms


@given(TIMES)
def test_a_time_bounds_the_ids_made_at_it(ms: int) -> None:
    ulid = IdSource().new_id(ms)
    assert ulid.startswith(id_prefix(ms))
    assert ms == LAST_MS or ulid < id_prefix(ms + 1)


def test_a_time_that_no_id_can_tell_is_the_nearest_that_one_can() -> None:
    assert id_prefix(-1) == id_prefix(0)
    assert id_prefix(LAST_MS + 1) == id_prefix(LAST_MS)


@given(st.lists(TIMES, min_size=2, max_size=50))
def test_ids_grow_strictly_even_when_the_clock_goes_back(times: list[int]) -> None:
    source = IdSource()
    ids = [source.new_id(ms) for ms in times]
    assert all(earlier < later for earlier, later in pairwise(ids))


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8))
def test_bulk_and_single_ids_share_one_order(sizes: list[int]) -> None:
    source = IdSource()
    ids: list[str] = []
    for size in sizes:
        bulk = source.new_ids(size, now_ms=1)
        assert len(bulk) == size
        ids += [*bulk, source.new_id(1)]
    assert ids == sorted(set(ids))


def test_a_million_ids_in_one_millisecond_carry_into_the_random_part() -> None:
    ids = IdSource().new_ids((1 << 20) + 2, now_ms=5)
    assert ids == sorted(set(ids))
    assert all(is_id(ulid) for ulid in (ids[0], ids[-1]))
    assert {id_time_ms(ids[0]), id_time_ms(ids[-1])} == {5}


def test_ids_still_grow_when_the_random_part_is_all_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    source = IdSource()
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", lambda size: b"\xff" * size)
        last_of_this_ms = source.new_id(7)
    after = source.new_id(7)
    assert last_of_this_ms.endswith("Z" * 16)
    assert after > last_of_this_ms
    assert id_time_ms(after) == 8


def test_an_id_without_a_time_takes_the_wall_clock() -> None:
    before = time.time_ns() // 1_000_000
    assert id_time_ms(IdSource().new_id()) >= before


def test_ids_can_be_made_of_another_clock_and_other_chance_for_a_while() -> None:
    source = IdSource()
    before = source.new_id()
    made = []
    for _ in range(2):
        with source.replaying(lambda: 7, lambda size: b"\x01" * size):
            made.append([source.new_id(), *source.new_ids(2)])
    assert made[0] == made[1] == sorted(set(made[0]))
    assert {id_time_ms(ulid) for ulid in made[0]} == {7}
    assert source.new_id() > before


def test_an_error_ends_the_replay_too() -> None:
    source = IdSource()
    with pytest.raises(ZeroDivisionError), source.replaying(lambda: 7, lambda size: b"1" * size):
        _ = 1 / 0
    assert id_time_ms(source.new_id()) > 7


def test_threads_never_share_an_id() -> None:
    made: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: made.append([new_id() for _ in range(2_000)]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == sorted(ids) for ids in made)
    assert len({ulid for ids in made for ulid in ids}) == 16_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_never_repeats_its_parents_ids() -> None:
    far_ahead = time.time_ns() // 1_000_000 + 60_000
    before = new_id(far_ahead)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "".join(new_ids(100)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    childs = [text[start : start + 26] for start in range(0, len(text), 26)]
    assert len(childs) == 100
    assert before < childs[0]
    assert not set(childs) & set(new_ids(100))


@pytest.mark.parametrize(
    "text",
    ["", "0" * 25, "0" * 27, "8" + "0" * 25, "0" * 25 + "U", "0" * 25 + "a", "0" * 25 + "\n"],
)
def test_what_is_not_a_ulid_is_refused(text: str) -> None:
    assert not is_id(text)
    with pytest.raises(InvalidOption, match="must be a ULID"):
        id_time_ms(text)


@pytest.mark.parametrize("ms", [-1, LAST_MS + 1])
def test_a_time_that_fits_no_ulid_is_refused(ms: int) -> None:
    with pytest.raises(InvalidOption, match="milliseconds since 1970"):
        new_id(ms)
