from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.extension import Erasing, Extension

from .conftest import Cli


def test_migrate_makes_a_store_and_then_finds_it_up_to_date(cli: Cli, tmp_path: Path) -> None:
    assert "Created" in cli("migrate").out
    assert "up to date" in cli("migrate").out
    versions = cli("migrate", "--json").json
    assert versions["before"] == versions["after"]


def test_migrate_has_changes_recorded_for_the_followers_of_extensions(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "tests.support.garden:followed")
    assert cli("migrate").code == 0
    [state] = cli("followers", "ls", "--json").json
    assert (state["name"], state["statuses"]) == ("followed.diary", ["completed"])


def test_migrate_prints_what_a_database_administrator_may_run(cli: Cli) -> None:
    url = "postgresql://ann:s3cr3t@nowhere.invalid/work?schema=mail"
    printed = cli("migrate", "--sql", "--url", url)
    assert printed.code == 0
    assert 'CREATE SCHEMA IF NOT EXISTS "mail"' in printed.out
    assert printed.out.endswith("COMMIT;\n")
    assert "s3cr3t" not in printed.out


def test_only_a_postgresql_store_is_printed(cli: Cli) -> None:
    assert cli("migrate", "--sql").says("only a PostgreSQL store", "leave --sql out")


def test_migrate_makes_a_schema_and_never_shows_a_password(cli: Cli, postgres_url: str) -> None:
    made = cli("migrate", "--url", postgres_url)
    assert made.out.startswith("Created postgresql://")
    again = cli("migrate", "--json", "--url", postgres_url)
    assert again.json["before"] == again.json["after"]
    assert "penstock:penstock@" not in made.out + again.out


def test_a_backup_is_restored(shopped: Cli, tmp_path: Path) -> None:
    assert shopped("backup", "copy.db", "--json").json["jobs"] == 6
    shopped("dead", "purge", "--all", "--yes")
    asked = shopped("restore", "copy.db")
    assert asked.code == 2
    assert asked.says("What is in it now is lost", "--yes")
    assert "Restored 6 jobs" in shopped("restore", "copy.db", "--yes").out
    assert len(shopped("dead", "ls", "--json").json) == 2


def test_a_store_that_is_not_there_is_restored_without_asking(shopped: Cli, tmp_path: Path) -> None:
    shopped("backup", "copy.db")
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert shopped("restore", "copy.db", "--url", url).code == 0
    assert len(shopped("jobs", "ls", "--url", url, "--json").json) == 6


def test_a_backup_never_overwrites(shopped: Cli, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    answer = shopped("backup", "copy.db")
    assert answer.code == 2
    assert answer.says("already a file copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_restoring_from_nothing_is_one_sentence_with_code_3(cli: Cli) -> None:
    answer = cli("restore", "none.db")
    assert answer.code == 3
    assert answer.says("no file none.db")


def test_restoring_from_something_else_is_one_sentence(shopped: Cli, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear store, " * 100)
    answer = shopped("restore", "letter.txt", "--yes")
    assert answer.code == 2
    assert answer.says("not a penstock store")
    assert len(shopped("jobs", "ls", "--json").json) == 6


def test_a_directory_is_no_store(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "work.db").mkdir()
    answer = cli("jobs", "ls")
    assert answer.code == 2
    assert answer.says("is a directory")


def test_a_file_of_another_kind_is_no_store(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "work.db").write_text("dear store, " * 100)
    answer = cli("jobs", "ls")
    assert answer.code == 2
    assert answer.says("not a penstock store")


def test_a_folder_of_copies_keeps_the_newest(shopped: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    for name in ("penstock-20250101T000000Z.db", "penstock-20250102T000000Z.db", "mine.db"):
        (folder / name).write_text("old")
    told = shopped("backup", "copies", "--keep", "2", "--json").json
    assert told["deleted"] == [str(Path("copies") / "penstock-20250101T000000Z.db")]
    assert Path(told["file"]).exists()
    left = {file.name for file in folder.iterdir()}
    assert left == {"mine.db", "penstock-20250102T000000Z.db", Path(told["file"]).name}
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert shopped("restore", told["file"], "--url", url).code == 0
    assert len(shopped("jobs", "ls", "--url", url, "--json").json) == 6


def test_a_copy_that_fails_deletes_no_older_one(shopped: Cli, tmp_path: Path) -> None:
    old = tmp_path / "copies" / "penstock-20250101T000000Z.db"
    old.parent.mkdir()
    old.write_text("old")
    url = f"sqlite:///{tmp_path / 'none.db'}"
    assert shopped("backup", "copies", "--keep", "1", "--url", url).code == 2
    assert old.exists()


def test_only_copies_in_a_folder_are_kept_by_number(shopped: Cli) -> None:
    assert shopped("backup", "copy.db", "--keep", "2").says("needs a folder")


def test_a_server_store_is_copied_and_restored_into_an_empty_one(
    cli: Cli, postgres_store_url: str, valkey_url: str, tmp_path: Path
) -> None:
    cli("schedules", "add", "nightly", "clean", "--every", "1h", "--url", postgres_store_url)
    assert "verified" in cli("backup", "copy.db", "--url", postgres_store_url).out
    assert "Restored" in cli("restore", "copy.db", "--url", valkey_url).out
    [found] = cli("schedules", "ls", "--json", "--url", valkey_url).json
    assert found["name"] == "nightly"
    assert cli("restore", "copy.db", "--url", valkey_url).says("already holds", "1 schedule")


def test_a_tenant_is_erased_on_record(cli: Cli, tmp_path: Path) -> None:
    cli("schedules", "add", "nightly", "clean", "--every", "1h", "--tenant", "acme")
    assert cli("erase", "--tenant", "acme", "--yes", "--json").json["erased"] == {"schedules": 1}
    assert "nothing to erase" in cli("erase", "--tenant", "acme", "--yes").out
    assert cli("erase", "--yes").says("told whose traces to erase")
    assert "erase" in {entry["action"] for entry in cli("audit", "ls", "--json").json}


def test_migrate_makes_the_tables_of_extensions_that_are_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "examples.links:extension")
    assert cli("migrate", "--json").json["extensions"] == {"links": 1}


def test_an_empty_variable_erases_nobody(cli: Cli) -> None:
    cli("schedules", "add", "nightly", "clean", "--every", "1h", "--tenant", "acme")
    refused = cli("erase", "--tenant", "acme", "--person", "", "--yes")
    assert refused.says("person", "not an empty text")
    assert len(cli("schedules", "ls", "--json").json) == 1


def test_installed_extensions_erase_what_they_keep_elsewhere(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forget(_: Penstock, __: Erasing) -> int:
        return 7

    keeper = Extension(name="keeper", always=True, erase=forget)
    monkeypatch.setattr("penstock.app.extensions.installed", lambda: {"keeper": keeper})
    cli("migrate")
    assert cli("erase", "--tenant", "acme", "--yes", "--json").json["erased"] == {"keeper": 7}


@pytest.fixture
def beside(
    cli: Cli, valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Jobs on Redis, and tables in a file that the test names."""
    monkeypatch.setenv("PENSTOCK_URL", valkey_url)
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "examples.links:extension")

    def name(file: str) -> None:
        monkeypatch.setenv("PENSTOCK_TABLES", f"sqlite:///{tmp_path / file}")

    name("tables.db")
    return name


def test_migrate_makes_the_outbox_where_tables_are_beside_the_jobs(
    cli: Cli, beside: Callable[[str], None]
) -> None:
    assert cli("migrate", "--json").json["extensions"] == {"links": 1, "outbox": 1}


def test_a_copy_of_redis_holds_the_tables_beside_it(
    cli: Cli, beside: Callable[[str], None], valkey_url: str
) -> None:
    assert cli("links", "add", "http://127.0.0.1:1/").code == 0
    beside("none.db")
    assert cli("backup", "copy.db").says("There is no store at", "none.db")
    beside("tables.db")
    assert cli("backup", "copy.db", "--json").json["jobs"] == 1
    new = f"{valkey_url}-restored"
    beside("new.db")
    assert cli("restore", "copy.db", "--url", new).code == 0
    [link] = cli("links", "ls", "--json", "--url", new).json
    assert link["url"] == "http://127.0.0.1:1/"
