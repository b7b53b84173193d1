"""Documents, pseudonyms, hashes, long and hostile texts, and what happens when something breaks."""

import json
import os
import stat
import string
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.apps.recorder.sanitise import STUB, Sanitiser, sanitiser
from penstock.apps.recorder.sanitise.tokens import TOKENS
from proof.sanitiser import lines

TOKEN = "gh" + "p_" + "aB3dE" * 8
SECRET = "Zk3v9QpX7" + "mT2wLs8Rb"
CLEAN = Sanitiser(key=b"for a test")


def test_a_text_without_anything_is_the_same_object() -> None:
    text = "nothing to see here, move along\n" * 300
    assert CLEAN.text(text).text is text


def test_documents_are_cleaned_by_their_names_too() -> None:
    document = {
        "user_email": "ada@example.com",
        "env": [{"name": "DB_PASSWORD", "value": "walrus77"}, {"name": "DEBUG", "value": "1"}],
        "pin": 4821,
        "phone": "4155552671",
        "card": 4111111111111111,
        "hostname": "build-07",
        TOKEN: {"deep": [[TOKEN]]},
        "n": 3,
        "ok": True,
    }
    assert CLEAN.value(document).value == {
        "user_email": "[REDACTED_EMAIL]",
        "env": [
            {"name": "DB_PASSWORD", "value": "[REDACTED_PASSWORD]"},
            {"name": "DEBUG", "value": "1"},
        ],
        "pin": "[REDACTED_PIN]",
        "phone": "[REDACTED_PHONE]",
        "card": "[REDACTED_CARD]",
        "hostname": "[REDACTED_HOSTNAME]",
        "[REDACTED_GITHUB_TOKEN]": {"deep": [["[REDACTED_GITHUB_TOKEN]"]]},
        "n": 3,
        "ok": True,
    }


def test_every_value_of_a_kubernetes_secret_goes() -> None:
    secret = {"kind": "Secret", "data": {"user": "YWRh", "x": "Zm9v"}, "metadata": {"name": "db"}}
    assert CLEAN.value(secret).value == {
        "kind": "Secret",
        "data": {"user": "[REDACTED_K8S_SECRET]", "x": "[REDACTED_K8S_SECRET]"},
        "metadata": {"name": "db"},
    }


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=30)
    | st.sampled_from(
        [TOKEN, "ada@byron.uk", "hunter2!x", "4111111111111111", 'a"b\\c', "/home/ada/x"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["password", "token", "a", "phone", "x y"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_json_stays_json_and_is_found_clean_again(value: object) -> None:
    for indent in (None, 2):
        text = json.dumps(value, indent=indent)
        cleaned = CLEAN.text(text).text
        json.loads(cleaned)
        assert CLEAN.text(cleaned).text == cleaned
    once = CLEAN.value(value).value
    assert CLEAN.value(once).value == once
    assert TOKEN not in json.dumps(once)


@given(st.text(alphabet=string.printable + "é\ud800\0", max_size=200))
def test_any_text_comes_through_twice_as_once_and_can_be_stored(text: str) -> None:
    once = CLEAN.text(text).text
    assert CLEAN.text(once).text == once
    assert "\0" not in once.encode().decode()


def test_a_finding_has_a_keyed_hash_and_no_value() -> None:
    (one,) = CLEAN.text(f"use {TOKEN}").findings
    (same,) = Sanitiser(key=b"for a test").text(TOKEN).findings
    (other,) = Sanitiser(key=b"another").text(TOKEN).findings
    assert one.hash == same.hash != other.hash
    assert (one.category, one.rule_id) == ("github_token", "github-token")
    assert TOKEN not in repr([getattr(one, name) for name in one.__slots__])


def test_the_key_is_made_once_for_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    first, second = Sanitiser().hash("x"), Sanitiser().hash("x")
    assert first == second
    path = tmp_path / "home" / "sanitiser.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "home") == ["sanitiser.key"]


@pytest.mark.parametrize("half", ["careless", "people"])
def test_texts_with_pseudonyms_come_through_again_unchanged(half: str) -> None:
    sanitiser = Sanitiser(pseudonyms=True, session="s", key=b"k")
    changed = []
    for line in lines(half):
        once = sanitiser.text(line.text).text
        if sanitiser.text(once).text != once:
            changed.append(once)
    assert changed == []


def test_pseudonyms_are_the_same_within_a_session_and_others_in_another() -> None:
    def named(session: str, text: str) -> str:
        return Sanitiser(pseudonyms=True, session=session, key=b"k").text(text).text

    one = named("a", "ada@byron.uk and bob@byron.uk and ada@byron.uk")
    first, second, third = one.split(" and ")
    assert first == third != second
    assert named("a", "ada@byron.uk") == first != named("b", "ada@byron.uk")
    assert named("a", one) == one


def test_what_goes_wrong_leaves_a_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> list[object]:
        raise RuntimeError("broken")

    monkeypatch.setattr(sanitiser, "search", broken)
    cleaned = CLEAN.text("some text")
    assert cleaned.text == STUB
    assert [each.rule_id for each in cleaned.findings] == ["sanitiser-failed"]
    assert CLEAN.value({"a": "some text"}).value == {STUB: STUB} or CLEAN.value(
        ["x y z"]
    ).value == [STUB]


def test_what_is_nested_too_deeply_becomes_a_stub() -> None:
    value: object = TOKEN
    for _ in range(100_000):
        value = [value]
    assert TOKEN not in str(CLEAN.value(value).value)[:10_000]


def test_a_text_that_never_settles_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitiser, "search", lambda data: [(0, 1, "always", "X", 1.0)])
    assert CLEAN.text("some text").text == STUB


def test_long_texts_are_cleaned_throughout() -> None:
    lines = [f"line {n} of an ordinary log\n" for n in range(20_000)]
    for n in range(0, 20_000, 1_999):
        lines[n] = f"  - name: API_TOKEN\n    value: {SECRET}{n}\n"
    cleaned = CLEAN.text("".join(lines))
    assert SECRET not in cleaned.text
    assert len(cleaned.findings) == 11


BEGINNINGS = sorted({prefix for row in TOKENS for prefix in row[2]})
WORDS = [
    "password=",
    "token: ",
    "Bearer ",
    "Authorization: ",
    "Cookie: a=",
    "://a:",
    "a@b.",
    "1.2.3.4 ",
]


@pytest.mark.parametrize("part", [*" a1A.@:/-_=\\\"'{[\n", "é", *WORDS, *BEGINNINGS[::12]])
def test_hostile_texts_take_linear_time(part: str) -> None:
    CLEAN.text(part * 64)
    began = process_time()
    CLEAN.text(part * (250_000 // len(part)))
    assert process_time() - began < 0.5  # about 0.02 on an idle machine; a square would take hours


BLOCK = "-----BEGIN RSA PRIVATE KEY-----\n" + SECRET * 3 + "\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("repeated", "secret"),
    [
        ("INSERT INTO a (password) VALUES ('b');", f"INSERT INTO a (password) VALUES ('{SECRET}')"),
        ("insert into a (b) values ('c');\n", f"insert into a (password) values ('{SECRET}')"),
        ("-----BEGIN RSA PRIVATE KEY-----", BLOCK),
        ("-----BEGIN RSA PRIVATE KEY-----\n", "\n" + BLOCK),
        ("login abcdef1 ", f"login: admin / {SECRET}"),
        ("token=", f"token={SECRET}"),
    ],
)
def test_a_secret_among_what_repeats_itself_is_found(repeated: str, secret: str) -> None:
    times = 20_000 // len(repeated)
    for text in (
        repeated * times + secret,
        repeated * times + secret + "\n" + repeated * times,
        repeated * times + " and " + repeated * times + secret,
    ):
        assert SECRET not in CLEAN.text(text).text


def test_a_hook_loads_nothing_heavy() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "from penstock.apps.recorder.sanitise import Sanitiser\n"
        "Sanitiser(key=b'k').value({'prompt': 'fix the login of ada@byron.uk'})\n"
        "loaded = set(sys.modules) - before\n"
        "heavy = {'msgspec', 'tomllib', 'dataclasses', 'asyncio', 'ipaddress', 'typing', 'json'}\n"
        "print(sorted(heavy & loaded))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
