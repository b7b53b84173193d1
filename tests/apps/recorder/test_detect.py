"""What rules of form cannot know is found by what stands around it."""

import time
from itertools import pairwise

import pytest

from penstock.apps.recorder.detect import ADDRESS, NAME, ORGANISATION, SECRET, detect

LINEAR_SECONDS = 4.0


def found(text: str) -> list[tuple[str, str]]:
    return [(one.category, text[one.start : one.end]) for one in detect(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name is Ada Lovelace.", (NAME, "Ada Lovelace")),
        ("mein Name ist Jürgen Groß", (NAME, "Jürgen Groß")),
        ("Signed-off-by: Jane Q. Doe", (NAME, "Jane Q. Doe")),
        ("Co-Authored-By: Pieter van der Berg <x>", (NAME, "Pieter van der Berg")),
        ("please ask Dr. Watson about it", (NAME, "Watson")),
        ("Hi Bob,\nsee below", (NAME, "Bob")),
        ("Best regards,\nAnna Schmidt", (NAME, "Anna Schmidt")),
        ("my colleague Priya broke it", (NAME, "Priya")),
        ("it was Thomas Bayes who said so", (NAME, "Thomas Bayes")),
        ("an invoice for Acme Widgets GmbH today", (ORGANISATION, "Acme Widgets GmbH")),
        ("our customer Contoso Freight wants it", (ORGANISATION, "Contoso Freight")),
        ("ship to 12 Baker Street, London NW1 6XE", (ADDRESS, "12 Baker Street, London NW1 6XE")),
        ("Lange Straße 12, 10115 Berlin", (ADDRESS, "Lange Straße 12, 10115 Berlin")),
        ("Gartenweg 3a", (ADDRESS, "Gartenweg 3a")),
        ("at 5, rue de la Paix, 75002 Paris", (ADDRESS, "5, rue de la Paix, 75002 Paris")),
        ("P.O. Box 1234", (ADDRESS, "P.O. Box 1234")),
        ("the password for staging is hunter2!", (SECRET, "hunter2")),
        ("the pin is 4711", (SECRET, "4711")),
        ("you can log in as admin / s3cr3tpw", (SECRET, "s3cr3tpw")),
    ],
)
def test_it_is_found_with_all_of_its_extent(text: str, expected: tuple[str, str]) -> None:
    assert expected in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "the password is wrong",
        "the password is required, and the token was refused",
        "password is [REDACTED_SECRET]",
        "My name is [REDACTED_NAME]",
        "class UserName: pass",
        "Hello World, this is Visual Studio Code",
        "I'm Claude Code",
        "Hi team,",
        "Error: Connection Refused at line 12",
        "Use React Native or Spring Boot",
        "def find_street(number: int) -> str: ...",
        "12 Jobs Failed On The Way",
        "See Pull Request 15 by the bot",
        "Python 3.11, PostgreSQL 15, Redis 7",
        "SELECT name FROM users WHERE id = 5",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert found(text) == []


def test_findings_do_not_overlap_and_are_in_order() -> None:
    text = "Dear Dr. Anna Schmidt,\nmy name is Anna Schmidt of Schmidt & Co GmbH, Parkweg 1"
    spans = [(one.start, one.end) for one in detect(text)]
    assert spans == sorted(spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_what_stands_where_a_long_text_is_cut_is_found() -> None:
    text = "x " * 99_995 + "My name is Ada Lovelace and so on. " + "y " * 10
    assert found(text) == [(NAME, "Ada Lovelace")]


@pytest.mark.parametrize("piece", ["a", "A ", "Aa ", "Dear ", "12 Aa ", "password is ", "Aa-"])
def test_hostile_text_takes_no_longer_than_other_text(piece: str) -> None:
    begin = time.process_time()
    detect(piece * (300_000 // len(piece)))
    assert time.process_time() - begin < LINEAR_SECONDS
