"""Learnings that say the same are recognised: by their words, nearly by their words, by meaning."""

import subprocess
import sys

import pytest

from penstock.apps.recorder.dedupe import (
    Known,
    dedupe_hash,
    distance,
    duplicate_of,
    nearest,
    simhash,
)

TEXT = (
    "Open every writing transaction with BEGIN IMMEDIATE, so that the second writer waits for the "
    "first one instead of failing at once with an error that says the database is locked"
)


def known(content: str, id_: str = "k1") -> Known:
    return Known(id_, "", content, dedupe_hash("bug_fix", "", content))


@pytest.mark.parametrize("other", [TEXT.upper(), TEXT.replace(",", " –"), f"  {TEXT}. "])
def test_case_and_punctuation_make_no_other_learning(other: str) -> None:
    assert dedupe_hash("bug_fix", "", other) == dedupe_hash("bug_fix", "", TEXT)


def test_a_category_does() -> None:
    assert dedupe_hash("pattern", "", TEXT) != dedupe_hash("bug_fix", "", TEXT)


def test_simhashes_of_nearly_the_same_words_are_near() -> None:
    near = distance(simhash(TEXT), simhash(f"{TEXT} today"))
    far = distance(simhash(TEXT), simhash("Prefer keyset paging over OFFSET for long lists"))
    assert near < 10 < far


def test_the_same_put_otherwise_is_a_duplicate() -> None:
    said = "Retry failed requests with exponential backoff and jitter"
    again = "With exponential backoff and jitter, retry requests that failed"
    found = duplicate_of(again, "another hash", [known(TEXT), known(said, "k2")])
    assert found is not None
    assert found.id == "k2"


def test_something_else_is_no_duplicate() -> None:
    assert duplicate_of("Pin the base image by its digest", "h", [known(TEXT)]) is None
    assert duplicate_of(TEXT, "h", []) is None


def test_the_nearest_is_found_among_many() -> None:
    others = [known(f"Rule number {n} is about gardens", str(n)) for n in range(50)]
    near = nearest(TEXT, [*others, known(TEXT.replace("first one", "other"), "it")])
    assert near is not None
    assert near[0].id == "it"


def test_the_embedder_leaves_logging_as_it_was() -> None:
    script = (
        "import logging; before = logging.root.handlers[:], logging.root.level\n"
        "from penstock.apps.recorder.dedupe import Known, nearest\n"
        "nearest('a', [Known('k', 'b', 'c', 'd')])\n"
        "assert (logging.root.handlers[:], logging.root.level) == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
