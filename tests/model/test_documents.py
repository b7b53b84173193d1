"""Records as JSON: times are ISO 8601, and what the API's document says of them is true."""

from typing import Any

import msgspec
from msgspec import Struct

from penstock.apps.recorder.records import Learning, SessionView
from penstock.model.documents import document, documented, record
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


class Part(Struct, frozen=True):
    at: int
    warn_at: float
    words: str


class Signed(Struct, frozen=True, rename="camel"):
    signed_at: int


class Whole(Struct, frozen=True, kw_only=True):
    valid_from: int
    valid_to: int | None
    parts: list[Part]
    named: dict[str, Part] | None
    chosen: Part | None
    signed: Signed | None
    maybe: list[Part] | None = None
    metadata: dict[str, Any]


def test_a_record_comes_back_from_its_document_and_metadata_is_nobody_s_time() -> None:
    part = Part(NOON, 0.8, "later")
    said = {"seen_at": "2027-01-15T08:00:00.000Z", "parts": [{"at": "noon"}]}
    whole = Whole(
        valid_from=NOON,
        valid_to=None,
        parts=[part],
        named={"a": part},
        chosen=part,
        signed=Signed(NOON),
        maybe=[part],
        metadata=said,
    )
    told = msgspec.json.decode(msgspec.json.encode(document(whole)))
    assert told["valid_from"] == told["named"]["a"]["at"] == "2027-01-15T08:00:00.000Z"
    assert told["signed"] == {"signedAt": NOON}, "what has names of its own is told as it is"
    assert record(Whole, told) == whole
    assert record(SessionView, document(VIEW)) == VIEW


def test_a_type_may_be_called_by_another_name() -> None:
    assert documented(Part, "Piece").__name__ == "PieceDocument"


def test_a_share_is_no_time_whatever_it_is_called() -> None:
    told = document(Part(NOON, 0.8, "later"))
    assert (told["warn_at"], msgspec.convert(told, documented(Part)).warn_at) == (0.8, 0.8)
