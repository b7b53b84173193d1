"""Records as JSON: times are ISO 8601, and what the API's document says of them is true."""

import msgspec

from penstock.apps.recorder.documents import document, documented
from penstock.apps.recorder.records import Learning, SessionView
from tests.apps.recorder.sessions import NOON, a_commit, a_tool, a_turn, a_view

VIEW = a_view([a_turn(1, 0, 60)], [a_tool(1, 5)], commits=[a_commit(9)])


def test_times_are_iso_wherever_they_stand() -> None:
    told = document(VIEW)
    assert told["row"]["started_at"] == "2027-01-15T08:00:00.000Z"
    assert told["turns"][0]["ended_at"] == "2027-01-15T08:01:00.000Z"
    assert told["commits"][0]["at"] == "2027-01-15T08:00:09.000Z"
    assert told["tools"][0]["duration_ms"] == 1_000
    assert str(NOON) not in msgspec.json.encode(told).decode()


def test_a_document_fits_the_type_that_describes_it() -> None:
    kind = documented(SessionView)
    read = msgspec.json.decode(msgspec.json.encode(document(VIEW)), type=kind)
    assert msgspec.to_builtins(read)["row"]["title"] == "Why?"
    schema = msgspec.json.schema(kind)["$defs"]
    assert schema["TurnDocument"]["properties"]["started_at"]["format"] == "date-time"
    assert "LearningDocument" in msgspec.json.schema(documented(Learning))["$defs"]


def test_a_type_is_made_once() -> None:
    assert documented(SessionView) is documented(SessionView)
