"""A key is named by its place, and read only where nobody else can read it."""

import os
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from penstock.app.keys import NoKey, read_key

KEY = "".join(("not-", "a-", "secret"))


def a_file(path: Path, mode: int = 0o600) -> str:
    path.write_text(f"{KEY}\n")
    path.chmod(mode)
    return f"file:{path}"


class Kept(KeyringBackend):
    """A key store that has one entry."""

    priority = 1  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        return KEY if (service, username) == ("penstock", "chain") else None

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


def test_a_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAIN_KEY", KEY)
    assert read_key("env:CHAIN_KEY") == KEY


def test_a_key_is_read_from_a_file_of_ones_own(tmp_path: Path) -> None:
    assert read_key(a_file(tmp_path / "key")) == KEY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(NoKey, match="chmod 600"):
        read_key(a_file(tmp_path / "key", mode))


def test_a_link_or_a_folder_is_no_file_of_a_key(tmp_path: Path) -> None:
    a_file(tmp_path / "key")
    os.symlink(tmp_path / "key", tmp_path / "link")
    for name in ("link", "missing"):
        with pytest.raises(NoKey):
            read_key(f"file:{tmp_path / name}")
    with pytest.raises(NoKey):
        read_key(f"file:{tmp_path}")


def test_a_key_is_read_from_the_key_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring.core, "_keyring_backend", Kept())
    assert read_key("keyring:penstock/chain") == KEY
    with pytest.raises(NoKey, match="no such entry"):
        read_key("keyring:penstock/other")


@pytest.mark.parametrize("reference", [KEY, f"raw:{KEY}", "env:", "env:NOT_SET", "keyring:one"])
def test_whatever_else_is_refused_without_showing_it(reference: str) -> None:
    with pytest.raises(NoKey) as refused:
        read_key(reference)
    assert KEY not in str(refused.value)
