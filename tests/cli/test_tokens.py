import re
from pathlib import Path

import pytest

from .conftest import Cli


def test_a_token_is_shown_once_and_only_its_hash_is_kept(cli: Cli, tmp_path: Path) -> None:
    made = cli("tokens", "create", "billing", "--scopes", "enqueue,read", "--tenant", "acme")
    assert made.code == 0
    assert re.fullmatch(r"pk_[0-9A-Z]{26}_[\w-]{43}\n", made.out)
    secret = made.out.strip().split("_", 2)[2]
    (known,) = cli("tokens", "ls", "--json").json
    assert (known["name"], known["scopes"], known["tenant_id"]) == (
        "billing",
        ["enqueue", "read"],
        "acme",
    )
    assert "hash" not in known
    for file in (tmp_path / "work.db", tmp_path / "work.db-wal"):
        assert not file.exists() or secret.encode() not in file.read_bytes()


def test_scopes_are_separated_by_commas_or_repeated(cli: Cli) -> None:
    several = ("--scopes", "enqueue", "--scopes", "read,operate")
    made = cli("tokens", "create", "ci", *several, "--json").json
    assert made["scopes"] == ["enqueue", "read", "operate"]


def test_a_script_gets_the_token_with_its_id(cli: Cli) -> None:
    made = cli("tokens", "create", "ci", "--scopes", "read", "--expires-in", "90d", "--json").json
    assert made["token"].startswith(f"pk_{made['id']}_")
    assert made["expires_at"] > made["created_at"]


def test_a_revoked_token_stays_listed_and_opens_nothing(cli: Cli) -> None:
    made = cli("tokens", "create", "ci", "--scopes", "read", "--json").json
    assert cli("tokens", "revoke", made["id"]).code == 0
    (known,) = cli("tokens", "ls", "--json").json
    assert known["revoked_at"] is not None
    assert "revoked" in cli("tokens", "ls").out


def test_making_and_revoking_are_on_record_without_the_secret(cli: Cli) -> None:
    made = cli("tokens", "create", "ci", "--scopes", "read", "--json").json
    cli("tokens", "revoke", made["id"])
    revoked, created = cli("audit", "ls", "--json").json
    assert (created["action"], created["details"]["name"]) == ("token.create", "ci")
    assert (revoked["action"], revoked["subject"]) == ("token.revoke", f"token:{made['id']}")
    assert created["actor"].startswith("cli:")
    assert made["token"] not in cli("audit", "ls", "--json").out


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("create", "ci"), 2, "--scopes"),
        (
            ("create", "ci", "--scopes", "everything"),
            2,
            "one of: enqueue, record, read, operate, admin",
        ),
        (("create", "ci", "--scopes", ","), 2, "at least one"),
        (("create", "ci", "--scopes", "read", "--expires-in", "soon"), 2, "a span such as"),
        (("revoke", "nobody"), 3, "penstock tokens ls"),
    ],
)
def test_wrong_input_is_one_sentence(
    shopped: Cli, words: tuple[str, ...], code: int, part: str
) -> None:
    answer = shopped("tokens", *words)
    assert answer.code == code
    assert answer.says(part)


def test_without_tokens_it_says_how_to_make_one(shopped: Cli) -> None:
    assert "penstock tokens create" in shopped("tokens", "ls").out
