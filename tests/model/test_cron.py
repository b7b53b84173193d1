from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.cron import ALIASES, aware, find_zone, parse_cron
from penstock.model.errors import InvalidSchedule

BERLIN = "Europe/Berlin"
MINUTE_MS = 60_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def ticks(expression: str, after: str, zone: str = "UTC", count: int = 1) -> list[str]:
    """The next ticks as local times with their offset."""
    found, moment = [], ms(after)
    for _ in range(count):
        following = parse_cron(expression).next_after(moment, find_zone(zone))
        assert following is not None
        moment = following
        found.append(aware(moment, find_zone(zone)).isoformat(timespec="minutes"))
    return found


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01+00:00"),
        ("*/15 * * * *", "2026-01-01T00:15:00Z", "2026-01-01T00:30+00:00"),
        ("5/20 * * * *", "2026-01-01T00:06:00Z", "2026-01-01T00:25+00:00"),
        ("0 9-17/4 * * *", "2026-01-01T09:00:00Z", "2026-01-01T13:00+00:00"),
        ("0 0 1,15 * *", "2026-01-02T00:00:00Z", "2026-01-15T00:00+00:00"),
        ("0 0 * JAN,Mar *", "2026-02-02T00:00:00Z", "2026-03-01T00:00+00:00"),
        ("0 0 * * mon", "2026-01-01T00:00:00Z", "2026-01-05T00:00+00:00"),
        ("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00+00:00"),
        ("0 0 * * FRI-SUN", "2026-01-03T00:00:00Z", "2026-01-04T00:00+00:00"),
        ("0 0 * * SUN-SUN", "2026-01-01T00:00:00Z", "2026-01-04T00:00+00:00"),
        ("0 0 ? * 1", "2026-01-01T00:00:00Z", "2026-01-05T00:00+00:00"),
        ("0 0 L * *", "2026-02-01T00:00:00Z", "2026-02-28T00:00+00:00"),
        ("0 0 15,L 2 *", "2028-02-15T00:00:00Z", "2028-02-29T00:00+00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00+00:00"),
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00+00:00"),
        ("0 0 */28 2 MON", "2028-02-29T00:00:00Z", "2038-02-01T00:00+00:00"),
        ("59 23 31 12 *", "2026-12-31T23:59:00Z", "2027-12-31T23:59+00:00"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00+00:00"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00+00:00"),
    ],
)
def test_an_expression_names_its_next_moment(expression: str, after: str, expected: str) -> None:
    assert ticks(expression, after) == [expected]


def test_six_fields_begin_with_the_second() -> None:
    moment = parse_cron("*/20 30 4 * * *").next_after(ms("2026-01-01T04:30:20Z"), find_zone("UTC"))
    assert moment == ms("2026-01-01T04:30:40Z")


def test_a_tick_comes_strictly_after_the_moment_asked_about() -> None:
    moment = ms("2026-01-01T00:00:00Z")
    cron = parse_cron("0 0 * * *")
    assert cron.next_after(moment - 1, find_zone("UTC")) == moment
    assert cron.next_after(moment, find_zone("UTC")) == ms("2026-01-02T00:00:00Z")


def test_day_of_month_or_day_of_week_is_enough_when_both_are_given() -> None:
    found = ticks("0 0 13 * FRI", "2026-01-01T00:00:00Z", count=4)
    assert [day[:10] for day in found] == ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]


def test_a_star_in_either_day_field_makes_the_other_decide() -> None:
    found = ticks("0 0 */2 * FRI", "2026-01-01T00:00:00Z", count=3)
    assert [day[:10] for day in found] == ["2026-01-09", "2026-01-23", "2026-02-13"]


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_its_expression(alias: str) -> None:
    assert parse_cron(alias.upper()) == parse_cron(ALIASES[alias])


@pytest.mark.parametrize(
    ("expression", "field", "allowed"),
    [
        ("60 * * * *", "minute", "0 to 59"),
        ("* 24 * * *", "hour", "0 to 23"),
        ("* * 0 * *", "day of the month", "1 to 31"),
        ("* * 32 * *", "day of the month", "L for the last day"),
        ("* * * 13 *", "month", "1 to 12 or JAN to DEC"),
        ("* * * * 8", "day of the week", "0 to 7 or SUN to SAT"),
        ("* * * * MOO", "day of the week", "SUN"),
        ("60 * * * * *", "second", "0 to 59"),
        ("*/0 * * * *", "minute", "stepped by 1 to 59"),
        ("*/90 * * * *", "minute", "stepped by 1 to 59"),
        ("30-10 * * * *", "minute", "from the smaller to the larger"),
        ("? * * * *", "minute", "0 to 59"),
        ("1,,2 * * * *", "minute", "0 to 59"),
        ("-5 * * * *", "minute", "0 to 59"),
        ("*-5 * * * *", "minute", "0 to 59"),
        ("² * * * *", "minute", "0 to 59"),
        ("* L * * *", "hour", "0 to 23"),
    ],
)
def test_a_wrong_field_is_named_with_what_it_may_hold(
    expression: str, field: str, allowed: str
) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse_cron(expression)
    assert refused.value.field == field
    assert allowed in str(refused.value)
    assert repr(expression) in str(refused.value)


@pytest.mark.parametrize("expression", ["", "* * * *", "* * * * * * *", "@reboot", "hourly"])
def test_a_wrong_number_of_fields_is_one_sentence(expression: str) -> None:
    with pytest.raises(InvalidSchedule, match="5 fields"):
        parse_cron(expression)


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 FEB *", "0 0 31 4,6,9,11 *"])
def test_a_date_that_no_year_has_is_refused(expression: str) -> None:
    with pytest.raises(InvalidSchedule, match="a date that exists"):
        parse_cron(expression)


SPRING, AUTUMN = "2026-03-29T00:30+01:00", "2026-10-25T00:30+02:00"


def test_a_fixed_time_in_a_gap_runs_once_right_after_it() -> None:
    assert ticks("30 2 * * *", SPRING, BERLIN, 2) == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_two_times_that_meet_at_the_end_of_a_gap_are_one_tick() -> None:
    assert ticks("0,30 2,3 * * *", SPRING, BERLIN, 3) == [
        "2026-03-29T03:00+02:00",
        "2026-03-29T03:30+02:00",
        "2026-03-30T02:00+02:00",
    ]


def test_a_fixed_time_in_a_fold_runs_the_first_time_only() -> None:
    assert ticks("30 2 * * *", AUTUMN, BERLIN, 2) == [
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_a_schedule_made_in_the_second_pass_of_an_hour_waits_for_the_next_day() -> None:
    assert ticks("30 2 * * *", "2026-10-25T02:10+01:00", BERLIN) == ["2026-10-26T02:30+01:00"]


def test_a_star_for_the_hour_follows_elapsed_time_through_a_gap() -> None:
    assert ticks("*/30 * * * *", "2026-03-29T01:00+01:00", BERLIN, 3) == [
        "2026-03-29T01:30+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-29T03:30+02:00",
    ]


def test_a_star_for_the_hour_follows_elapsed_time_through_a_fold() -> None:
    assert ticks("*/30 * * * *", "2026-10-25T01:30+02:00", BERLIN, 5) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
        "2026-10-25T03:00+01:00",
    ]


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        ("America/New_York", "30 2 * * *", "2026-03-08T05:00Z", "2026-03-08T03:00-04:00"),
        ("America/New_York", "30 1 * * *", "2026-11-01T04:00Z", "2026-11-01T01:30-04:00"),
        ("America/New_York", "30 1 * * *", "2026-11-01T05:30Z", "2026-11-02T01:30-05:00"),
        # Half an hour: 02:00 becomes 02:30, and back.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T14:00Z", "2026-10-04T02:30+11:00"),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T14:00Z", "2026-04-05T01:45+11:00"),
        ("Australia/Lord_Howe", "45 * * * *", "2026-04-04T14:45Z", "2026-04-05T01:45+10:30"),
        # The gap is at midnight: the day begins at 01:00.
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00Z", "2018-11-04T01:00-02:00"),
        ("America/Sao_Paulo", "0 0 4 11 *", "2018-11-03T12:00Z", "2018-11-04T01:00-02:00"),
        # The fold crosses midnight: 23:00 to 24:00 of the 17th comes twice.
        ("America/Sao_Paulo", "30 23 * * *", "2018-02-18T00:00Z", "2018-02-17T23:30-02:00"),
        ("America/Sao_Paulo", "30 * 17 2 *", "2018-02-18T01:30Z", "2018-02-17T23:30-03:00"),
        # Clocks go back for Ramadan.
        ("Africa/Casablanca", "30 2 * * *", "2026-02-15T00:00Z", "2026-02-15T02:30+01:00"),
        ("Africa/Casablanca", "30 2 * * *", "2026-03-22T00:00Z", "2026-03-22T03:00+01:00"),
        # A whole day that was left out.
        ("Pacific/Apia", "0 12 30 12 *", "2011-12-30T00:00Z", "2011-12-31T00:00+14:00"),
    ],
)
def test_clocks_change_in_other_ways_elsewhere(
    zone: str, expression: str, after: str, expected: str
) -> None:
    assert ticks(expression, after.replace("Z", "+00:00"), zone) == [expected]


ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Kathmandu",
)
NIGHTS = [
    ms(f"{day}T00:00:00+00:00")
    for day in (
        "2026-03-28",
        "2026-10-24",
        "2026-03-07",
        "2026-10-31",
        "2026-04-04",
        "2026-10-03",
        "2018-11-03",
        "2018-02-17",
        "2026-02-14",
        "2026-03-21",
        "2028-02-28",
    )
]


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    step = st.integers(1, high).map(lambda n: f"*/{n}")
    span = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    listed = st.lists(number, min_size=1, max_size=3).map(lambda some: ",".join(map(str, some)))
    return st.one_of(st.just("*"), step, span, listed)


EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7)).map(
    " ".join
)


def matches(word: str, value: int) -> bool:
    """Read a field anew, by asking about one value instead of building a set."""
    for part in word.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        if low == "*":
            if value % int(step or 1) == 0:
                return True
        elif int(low) <= value <= int(high or low):
            return True
    return False


def shown(expression: str, local: datetime) -> bool:
    """Whether a local time matches an expression."""
    minute, hour, day, month, weekday = expression.split()
    if not (matches(minute, local.minute) and matches(hour, local.hour)):
        return False
    if not (matches(month, local.month) if "/" not in month else _months(month, local.month)):
        return False
    by_day = matches(day, local.day) if "/" not in day else (local.day - 1) % _step(day) == 0
    today = local.isoweekday() % 7
    by_weekday = matches(weekday, today) or (today == 0 and _names_seven(weekday))
    return by_day and by_weekday if day[0] == "*" or weekday[0] == "*" else by_day or by_weekday


def _step(word: str) -> int:
    return int(word.partition("/")[2])


def _months(word: str, month: int) -> bool:
    return (month - 1) % _step(word) == 0


def _names_seven(word: str) -> bool:
    return "/" not in word and matches(word.replace("*", "0"), 7)


def oracle(expression: str, zone: ZoneInfo, start: int, end: int) -> list[int]:
    """Every tick in a span, by looking at what the clocks show at each minute."""
    hour = expression.split()[1]
    elapsed = hour == "*" or (hour.startswith("*/") and _step(hour) < 24)
    if hour.startswith("*/") and len([h for h in range(24) if h % _step(hour) == 0]) == 1:
        elapsed = False
    found: set[int] = set()
    seen: set[datetime] = set()
    before = aware(start - 180 * MINUTE_MS, zone).replace(tzinfo=None)
    for moment in range(start - 180 * MINUTE_MS, end, MINUTE_MS):
        local = aware(moment, zone).replace(tzinfo=None, fold=0)
        if shown(expression, local) and (elapsed or local not in seen):
            found.add(moment)
        if not elapsed:
            missing = before + timedelta(minutes=1)
            while missing < local:
                if shown(expression, missing):
                    found.add(moment)
                missing += timedelta(minutes=1)
        seen.add(local)
        before = max(local, before) if not elapsed else local
    return sorted(moment for moment in found if moment > start)


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS, st.sampled_from(ZONES), st.sampled_from(NIGHTS), st.integers(0, 1440))
@pytest.mark.thorough
def test_every_tick_of_a_night_is_found_and_no_other(
    expression: str, zone_name: str, night: int, minutes: int
) -> None:
    zone, cron = find_zone(zone_name), parse_cron(expression)
    start = night + minutes * MINUTE_MS
    end = start + 1080 * MINUTE_MS
    found: list[int] = []
    tick = cron.next_after(start, zone)
    while tick is not None and tick < end:
        found.append(tick)
        tick = cron.next_after(tick, zone)
    assert found == oracle(expression, zone, start, end)


@settings(max_examples=100, deadline=None)
@given(
    EXPRESSIONS,
    st.sampled_from(ZONES),
    st.integers(ms("2000-01-01T00:00Z"), ms("2099-01-01T00:00Z")),
)
def test_a_tick_does_not_depend_on_where_the_search_began(
    expression: str, zone_name: str, moment: int
) -> None:
    zone, cron = find_zone(zone_name), parse_cron(expression)
    tick = cron.next_after(moment, zone)
    assert tick is not None
    assert tick > moment
    assert cron.next_after((moment + tick) // 2, zone) == tick
    assert cron.next_after(tick - 1, zone) == tick


def test_a_second_in_every_second_of_a_gap_is_found_quickly() -> None:
    cron = parse_cron("* * * * * *")
    before = ms("2026-03-29T01:59:59+01:00")
    assert cron.next_after(before, find_zone(BERLIN)) == before + 1_000
    assert aware(before + 1_000, find_zone(BERLIN)).hour == 3


@pytest.mark.parametrize("name", ["Europe/Berlni", "Europe", "../etc/passwd", "", "Mars/Phobos"])
def test_an_unknown_zone_is_one_sentence(name: str) -> None:
    with pytest.raises(InvalidSchedule, match="an IANA time zone such as Europe/Berlin"):
        find_zone(name)


def test_a_misspelt_zone_is_answered_with_the_right_one() -> None:
    with pytest.raises(InvalidSchedule, match=r"did you mean Europe/Berlin\?"):
        find_zone("Europe/Berlni")


def test_a_moment_is_shown_in_its_zone() -> None:
    moment = datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert aware(int(moment.timestamp() * 1000), find_zone(BERLIN)).hour == 12
