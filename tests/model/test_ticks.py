from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.clock import from_iso
from penstock.model.errors import InvalidSchedule
from penstock.model.ids import derived_id, id_time_ms, is_id
from penstock.model.job import KeyScope, NewJob
from penstock.model.schedule import (
    Misfire,
    Schedule,
    ScheduleKind,
    due_ticks,
    first_tick,
    next_tick,
    next_ticks,
    options_of,
    render,
    tick_jobs,
)

NOW = from_iso("2026-01-01T12:00:00Z")
MINUTE = 60_000
HOUR = 3_600_000


def schedule(**fields: Any) -> Schedule:
    chosen: dict[str, Any] = {"id": "S", "name": "nightly", "type": "work"}
    chosen |= {"kind": ScheduleKind.INTERVAL, "interval_ms": MINUTE, "starts_at": NOW}
    return Schedule(**chosen | fields)


def cron(expression: str, **fields: Any) -> Schedule:
    return schedule(
        **{"kind": ScheduleKind.CRON, "expression": expression, "starts_at": None} | fields
    )


def test_an_interval_first_ticks_at_its_start() -> None:
    assert first_tick(schedule(), NOW) == NOW
    assert first_tick(schedule(starts_at=NOW + 5), NOW) == NOW + 5


def test_an_interval_counts_from_its_start_and_never_drifts() -> None:
    assert next_tick(schedule(), NOW + 7 * MINUTE + 1_234) == NOW + 8 * MINUTE


def test_once_ticks_once() -> None:
    once = schedule(kind=ScheduleKind.ONCE, interval_ms=None)
    assert first_tick(once, NOW - 1) == NOW
    assert next_tick(once, NOW) is None


def test_a_cron_schedule_made_at_its_very_time_waits_for_the_next() -> None:
    assert first_tick(cron("0 12 * * *"), NOW) == NOW + 24 * HOUR


def test_a_start_holds_a_cron_schedule_back_and_counts_itself() -> None:
    assert next_tick(cron("0 * * * *", starts_at=NOW + HOUR), NOW) == NOW + HOUR


def test_the_end_counts_and_the_expiry_does_not() -> None:
    assert next_tick(schedule(ends_at=NOW + MINUTE), NOW) == NOW + MINUTE
    assert next_tick(schedule(ends_at=NOW + MINUTE - 1), NOW) is None
    assert next_tick(schedule(expires_at=NOW + MINUTE), NOW) is None


def test_no_more_ticks_are_shown_than_runs_are_left() -> None:
    left = schedule(max_runs=5, run_count=3)
    assert next_ticks(left, NOW, 5) == [NOW + MINUTE, NOW + 2 * MINUTE]
    assert len(next_ticks(schedule(), NOW, 5)) == 5


def test_nothing_is_due_before_its_time() -> None:
    assert due_ticks(schedule(next_run_at=NOW), NOW - 1) == ([], NOW)
    assert due_ticks(schedule(next_run_at=None), NOW) == ([], None)


@pytest.mark.parametrize("misfire", Misfire)
def test_a_tick_on_time_is_fired_whatever_the_policy(misfire: Misfire) -> None:
    due = due_ticks(schedule(next_run_at=NOW, misfire=misfire), NOW + 20)
    assert due == ([NOW], NOW + MINUTE)


def test_one_fires_only_the_latest_of_the_missed() -> None:
    due = due_ticks(schedule(next_run_at=NOW, misfire=Misfire.ONE), NOW + 10 * HOUR + 5)
    assert due == ([NOW + 10 * HOUR], NOW + 10 * HOUR + MINUTE)


def test_all_fires_every_missed_one_a_thousand_at_a_time() -> None:
    late = schedule(next_run_at=NOW, misfire=Misfire.ALL)
    due = due_ticks(late, NOW + 1_500 * MINUTE)
    assert due.ticks == [NOW + n * MINUTE for n in range(1_000)]
    assert due.next == NOW + 1_000 * MINUTE


@pytest.mark.parametrize(
    ("interval", "late", "fires"),
    [
        (24 * HOUR, 60_000, True),
        (24 * HOUR, 60_001, False),
        (10_000, 5_000, True),
        (10_000, 5_001, False),
    ],
)
def test_skip_fires_what_is_at_most_a_minute_or_half_a_period_late(
    interval: int, late: int, fires: bool
) -> None:
    found = schedule(next_run_at=NOW, interval_ms=interval, misfire=Misfire.SKIP)
    due = due_ticks(found, NOW + late)
    assert due == ([NOW] if fires else [], NOW + interval)


def test_the_last_run_leaves_nothing_to_wait_for() -> None:
    last = schedule(next_run_at=NOW, max_runs=3, run_count=2)
    assert due_ticks(last, NOW) == ([NOW], None)
    several = schedule(next_run_at=NOW, max_runs=3, run_count=1, misfire=Misfire.ALL)
    assert due_ticks(several, NOW + HOUR) == ([NOW, NOW + MINUTE], None)
    over = schedule(next_run_at=NOW, max_runs=3, run_count=3)
    assert due_ticks(over, NOW) == ([], None)


def test_a_month_of_missed_seconds_is_not_walked() -> None:
    busy = cron("* * 3 * * *", next_run_at=from_iso("2026-01-01T03:00:00Z"))
    due = due_ticks(busy, from_iso("2026-02-01T12:00:00Z"))
    assert due == ([from_iso("2026-02-01T03:59:59Z")], from_iso("2026-02-02T03:00:00Z"))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["*/37 * * * *", "0 */5 * * *", "30 2 * * *", "0 0 * * MON"]),
    st.integers(0, 40 * 24 * HOUR),
)
def test_the_latest_is_the_last_of_all(expression: str, passed: int) -> None:
    start = from_iso("2026-03-01T00:00:00Z")
    found = cron(expression, zone="Europe/Berlin")
    found = cron(expression, zone="Europe/Berlin", next_run_at=next_tick(found, start))
    walked = [found.next_run_at]
    while (tick := next_tick(found, walked[-1] or 0)) is not None and tick <= start + passed:
        walked.append(tick)
    due = due_ticks(found, start + passed)
    assert due.ticks == ([walked[-1]] if (walked[-1] or 0) <= start + passed else [])


def test_a_tick_always_has_the_same_id() -> None:
    made = derived_id(NOW, "S")
    assert is_id(made)
    assert id_time_ms(made) == NOW
    assert made == derived_id(NOW, "S")
    assert len({made, derived_id(NOW, "T"), derived_id(NOW + 1, "S")}) == 3


def test_the_jobs_of_ticks_carry_their_schedule_and_their_time() -> None:
    job = NewJob(
        id="x", type="work", queue="slow", key="k", key_scope=KeyScope.UNTIL_DONE, delay_ms=500
    )
    jobs = tick_jobs(schedule(options=options_of(job)), [NOW, NOW + MINUTE])
    assert [job.scheduled_at for job in jobs] == [NOW + 500, NOW + MINUTE + 500]
    assert {(job.queue, job.key, job.schedule_id) for job in jobs} == {("slow", "k", "S")}
    assert jobs[0].id == derived_id(NOW, "S")


def test_placeholders_are_filled_in_and_keep_their_type() -> None:
    payload = '{"a": ["{{ tick.ms }}", {"b": "{{run}}"}], "c": "run {{ run }} of {{ name }}"}'
    filled = render(schedule(payload=payload), NOW, 7, None)
    assert filled == f'{{"a":[{NOW},{{"b":7}}],"c":"run 7 of nightly"}}'


def test_a_tick_is_told_in_utc_and_in_its_zone() -> None:
    payload = '["{{ tick }}", "{{ tick.local }}", "{{ tick.date }}"]'
    late = from_iso("2026-06-30T23:30:00Z")
    filled = render(schedule(payload=payload, zone="Europe/Berlin"), late, 1, None)
    assert filled == '["2026-06-30T23:30:00.000Z","2026-07-01T01:30:00+02:00","2026-07-01"]'


def test_the_previous_tick_is_nothing_the_first_time() -> None:
    payload = '["{{ previous }}", "since {{ previous }}"]'
    assert render(schedule(payload=payload), NOW, 1, None) == '[null,"since "]'
    assert "2026-01-01T12:00:00.000Z" in render(schedule(payload=payload), NOW + 1, 2, NOW)


def test_each_missed_tick_knows_the_one_before_it() -> None:
    late = schedule(payload='"{{ previous }}"', last_run_at=NOW - MINUTE)
    payloads = [job.payload for job in tick_jobs(late, [NOW, NOW + MINUTE])]
    assert payloads == ['"2026-01-01T11:59:00.000Z"', '"2026-01-01T12:00:00.000Z"']


def test_four_braces_stand_for_two() -> None:
    assert render(schedule(payload='"{{{{ name }}}}"'), NOW, 1, None) == '"{{ name }}"'


def test_a_payload_without_placeholders_stays_byte_for_byte() -> None:
    assert render(schedule(payload='{"a":  1.50}'), NOW, 1, None) == '{"a":  1.50}'


@pytest.mark.parametrize("payload", ['"{{ user }}"', '"{{ }}"', '"x {{ tick.year }}"', '{"{{'])
def test_what_cannot_be_filled_in_is_refused(payload: str) -> None:
    with pytest.raises(InvalidSchedule):
        render(schedule(payload=payload), NOW, 1, None)


@pytest.mark.parametrize("options", ["", "[]", '{"priority": "high"}', '{"delay_ms": "soon"}'])
def test_options_edited_by_hand_into_nonsense_are_refused(options: str) -> None:
    with pytest.raises(InvalidSchedule, match="the fields of a job"):
        tick_jobs(schedule(options=options), [NOW])
