"""Rules of a user's own."""

from pathlib import Path

import pytest

from penstock.apps.recorder.sanitise import Sanitiser
from penstock.apps.recorder.sanitise.user_rules import InvalidRules, UserRules

RULES = """
[[rules]]
id = "acme-token"
type = "ACME_TOKEN"
pattern = 'acme_[a-z0-9]{8}'
keywords = ["acme_"]

[[rules]]
id = "project"
pattern = 'Project [A-Z]\\w+'
entropy = 3

[allow]
rules = ["ipv4"]
values = ["ada@byron.uk"]
patterns = ['.*@acme\\.org']
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def test_a_users_rules_stand_beside_ours(rules: Path) -> None:
    clean = Sanitiser(rules, key=b"k")
    text = "acme_a1b2c3d4, Project Walrus, Project Aaaaaa, bob@byron.uk"
    assert clean.text(text).text == (
        "[REDACTED_ACME_TOKEN], [REDACTED_PROJECT], Project Aaaaaa, [REDACTED_EMAIL]"
    )


def test_what_is_allowed_is_left(rules: Path) -> None:
    text = "81.2.69.142 ada@byron.uk eve@acme.org"
    assert Sanitiser(rules, key=b"k").text(text).text == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules = 3 4", "are no TOML"),
        ('[[rules]]\nid = "x"', "has an id and a pattern"),
        ("[[rules]]\nid = 'x'\npattern = '('", "cannot be read"),
        ("[[rules]]\nid = 'x'\npattern = '(?=a)'", "cannot be read"),
        ("[[rules]]\nid = 'x'\npattern = '.*'", "matches what it would leave"),
        ("[[rules]]\nid = 'x'\npattern = 'a'\nnote = 'b'", "it has note"),
        ("[[rules]]\nid = 'x'\ntype = 'a b'\npattern = 'a'", "is not of A-Z"),
        ("[other]\na = 1", "expected rules and allow"),
    ],
)
def test_rules_that_cannot_be_used_are_refused_in_a_sentence(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(InvalidRules, match=problem):
        UserRules.load(path)


def test_a_file_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidRules, match="cannot be read: No such file"):
        Sanitiser(tmp_path / "none.toml")
