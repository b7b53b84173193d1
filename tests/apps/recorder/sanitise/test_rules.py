"""What is taken out, what is left, and that nothing is found twice."""

import random

import pytest

from penstock.apps.recorder.sanitise import Sanitiser
from penstock.apps.recorder.sanitise.tokens import TOKENS
from proof.corpus.own.values import VALUES, tokens
from proof.sanitiser import has_format, is_secret, measure

CHANCE = random.Random(7)


@pytest.fixture(scope="module")
def sanitiser() -> Sanitiser:
    return Sanitiser(key=b"for a test")


@pytest.mark.parametrize("half", ["blind", "own"])
def test_the_corpus_is_sanitised_as_well_as_it_was(half: str) -> None:
    score = measure(half)
    assert score.recall(has_format) >= 0.999
    assert score.recall(is_secret) >= 0.99
    assert score.recall() >= 0.985
    assert score.precision >= 0.99


def test_every_token_of_the_table_is_found_wherever_it_stands(sanitiser: Sanitiser) -> None:
    left = [
        (category, token)
        for category, token in tokens(CHANCE)
        for text in (
            token,
            f'x="{token}"',
            f"a\\n{token}\\n",
            f"k%3D{token}",
            f"\x1b[31m{token}\x1b[0m",
        )
        if token in sanitiser.text(text).text
    ]
    assert left == []


def test_rules_have_names_of_their_own() -> None:
    names = [rule for rule, *_ in TOKENS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [n for n in VALUES if VALUES[n][0] not in ("", "generic_secret")])
def test_what_is_redacted_is_left_alone(sanitiser: Sanitiser, name: str) -> None:
    text = f"password: {VALUES[name][1](CHANCE)} and https://x:{VALUES['urlpass'][1](CHANCE)}@h.io/"
    once = sanitiser.text(text)
    twice = sanitiser.text(once.text)
    assert once.findings
    assert twice.text == once.text
    assert twice.findings == ()


def test_a_key_of_capitals_alone_is_a_key(sanitiser: Sanitiser) -> None:
    key = "AK" + "IA" + "QWERTZUIOPASDFGH"
    assert sanitiser.text(f"use {key} now").text == "use [REDACTED_AWS_ACCESS_KEY] now"


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "export TOKEN=${TOKEN}",
        "password = getpass()",
        "the password is required",
        "session_id: 0b9f3c1e-5d7a-4f60-9c7e-3a1b2c4d5e6f",
        '"sessionId":"0b9f3c1e-5d7a-4f60-9c7e-3a1b2c4d5e6f"',
        "session_id: 11111111-2222-3333-4444-555555555555",
        "49927398-7160-4111-1111-111111111111 12345678-4111-1111-1111-111111111111",
        "max_tokens=4096, input_tokens: 12",
        "sha512-" + "q" * 20 + "Zm9v" * 12,
        "a@b, icon@2x.png, git@github.com:a/b.git, jane@example.com",
        "10.0.0.1 and 127.0.0.1 and v1.2.3.4",
        "1700000000000",
        "-----BEGIN RSA PRIVATE KEY-----",
        "license: Apache-2.0, a public licence",
        "/home/user/x, /Users/Shared, /api/home/list",
    ],
)
def test_what_only_looks_like_it_is_left(sanitiser: Sanitiser, text: str) -> None:
    assert sanitiser.text(text).text == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DB_PASSWORD=Tr0ub4dor", "DB_PASSWORD=[REDACTED_PASSWORD]"),
        ('{"password": 12345678}', '{"password": "[REDACTED_PASSWORD]"}'),
        ("postgres://app:s3cr3t@db/x", "postgres://app:[REDACTED_PASSWORD]@db/x"),
        ("curl -u me:hunter22 x.io", "curl -u me:[REDACTED_PASSWORD] x.io"),
        ("cd /home/ada/src", "cd /home/[REDACTED_USER]/src"),
        ("C:\\Users\\ada\\x", "C:\\Users\\[REDACTED_USER]\\x"),
        ("Author: Ada Byron <ada@byron.uk>", "Author: [REDACTED_NAME] <[REDACTED_EMAIL]>"),
        ("the password is hunter2!", "the password is [REDACTED_PASSWORD]!"),
        ("from 81.2.69.142 port 22", "from [REDACTED_IP_ADDRESS] port 22"),
        ("call +1 415 555 2671", "call [REDACTED_PHONE]"),
        (
            "11111111-2222-3333-4444-555555555555 paid by 4111-1111-1111-1111",
            "11111111-2222-3333-4444-555555555555 paid by [REDACTED_CARD]",
        ),
    ],
)
def test_only_the_value_goes(sanitiser: Sanitiser, text: str, left: str) -> None:
    assert sanitiser.text(text).text == left
