from pathlib import Path

import pytest

from penstock import Settings, load_settings
from penstock.model.errors import InvalidOption


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_anything_the_defaults_hold() -> None:
    assert load_settings(environ={}) == Settings()


def test_a_toml_file_beside_the_program_is_read(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('url = "sqlite:///a.db"\nlease = 30\n')
    settings = load_settings(environ={})
    assert (settings.url, settings.lease) == ("sqlite:///a.db", 30)


def test_a_table_named_penstock_may_hold_the_settings(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[penstock]\nconcurrency = 3\n[other]\nx = 1\n")
    assert load_settings("own.toml", environ={}).concurrency == 3
    assert load_settings(environ={"PENSTOCK_CONFIG": "own.toml"}).concurrency == 3


def test_overrides_beat_the_environment_and_the_environment_beats_the_file(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("poll_interval = 9\nprefetch = 1\nconcurrency = 1\n")
    environ = {"PENSTOCK_PREFETCH": "2", "PENSTOCK_CONCURRENCY": "2"}
    settings = load_settings(environ=environ, concurrency=3, poll_interval=None)
    assert (settings.poll_interval, settings.prefetch, settings.concurrency) == (9, 2, 3)


def test_lists_are_separated_by_commas_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('worker_queues = ["mail"]\nworker_name = "toml"\n')
    environ = {"PENSTOCK_WORKER_TYPES": "send, resize,", "PENSTOCK_WORKER_NAME": "w1"}
    settings = load_settings(environ=environ)
    assert (settings.worker_types, settings.worker_queues) == (("send", "resize"), ("mail",))
    assert settings.worker_name == "w1"
    assert load_settings(environ={"PENSTOCK_WORKER_QUEUES": ""}).worker_queues == ()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("colour = 1", "colour"),
        ("lease = 'long'", "lease"),
        ("lease = ", "TOML"),
        ("concurrency = 0", "concurrency"),
        ("lease = -1", "lease"),
        ("max_rescues = 0", "max_rescues"),
    ],
)
def test_a_wrong_file_is_refused_and_names_the_setting(
    tmp_path: Path, content: str, word: str
) -> None:
    (tmp_path / "penstock.toml").write_text(content)
    with pytest.raises(InvalidOption, match=word):
        load_settings(environ={})


def test_a_wrong_value_in_the_environment_is_refused() -> None:
    with pytest.raises(InvalidOption, match="concurrency"):
        load_settings(environ={"PENSTOCK_CONCURRENCY": "many"})


def test_a_port_that_no_machine_has_is_refused() -> None:
    with pytest.raises(InvalidOption, match="port"):
        load_settings(environ={"PENSTOCK_PORT": "99999"})


def test_a_missing_file_that_was_asked_for_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"missing\.toml"):
        load_settings("missing.toml", environ={})


def test_leases_must_outlast_their_renewals() -> None:
    with pytest.raises(InvalidOption, match="renew_interval"):
        load_settings(environ={}, lease=10, renew_interval=10)


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        Settings().lease = 5  # type: ignore[misc]
