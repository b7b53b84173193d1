"""Time zones: from local times to moments and back, across gaps and folds.

A gap is the hour that a clock put forward leaves out; a fold is the hour that comes twice.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from penstock.model.refused import InvalidSchedule

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of naive local and UTC arithmetic
_MILLISECOND = timedelta(milliseconds=1)
_SECOND_MS = 1_000


@lru_cache(maxsize=1024)
def find_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, or a sentence with the nearest one."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        from difflib import get_close_matches

        close = get_close_matches(str(name), sorted(available_timezones()), 1)
        hint = f"did you mean {close[0]}?" if close else "or UTC"
        raise InvalidSchedule(
            "zone", name, f"an IANA time zone such as Europe/Berlin ({hint})"
        ) from None


def local_time(ms: int, zone: ZoneInfo) -> datetime:
    """What the clocks of a zone show at a moment, with its `fold`, without the zone."""
    return aware(ms, zone).replace(tzinfo=None)


def aware(ms: int, zone: ZoneInfo) -> datetime:
    """A moment as a time in its zone."""
    return (_EPOCH + ms * _MILLISECOND).replace(tzinfo=UTC).astimezone(zone)


def moment(local: datetime, zone: ZoneInfo, fold: int) -> int:
    """The moment at which a zone's clocks show a time: the first (fold 0) or the second (1)."""
    return (local - _EPOCH) // _MILLISECOND - _offset_ms(local.replace(tzinfo=zone, fold=fold))


def in_gap(local: datetime, zone: ZoneInfo) -> bool:
    """Whether a zone's clocks never show this time."""
    return moment(local, zone, 0) > moment(local, zone, 1)


def gap_end(local: datetime, zone: ZoneInfo) -> int:
    """The first moment after the gap that a time lies in."""
    low, high = moment(local, zone, 1), moment(local, zone, 0)
    before = _offset_ms(aware(low, zone))
    while high - low > _SECOND_MS:
        middle = (low + high) // (2 * _SECOND_MS) * _SECOND_MS
        if _offset_ms(aware(middle, zone)) == before:
            low = middle
        else:
            high = middle
    return high


def _offset_ms(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else offset // _MILLISECOND
