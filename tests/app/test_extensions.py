"""Extensions: how they are found, what they may be called, and what they bring."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from examples.links import check, extension
from penstock import Penstock, Settings, load_settings
from penstock.app import extensions
from penstock.extension import Extension, Table, Tables
from penstock.model import redact
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.testing import FakeClock


class Shelf:
    """What `app.shelf` is."""

    def __init__(self, app: Penstock) -> None:
        self.app = app


SHELF = Extension(name="shelf", namespace=Shelf)


@pytest.fixture
def shelf_is_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if its package were, with an entry point."""

    class Point:
        name = "shelf"

        @staticmethod
        def load() -> Extension:
            return SHELF

    extensions.installed.cache_clear()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()])
    yield
    extensions.installed.cache_clear()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


async def test_an_extension_brings_types_and_schedules(url: str) -> None:
    async with Penstock(url, extensions=[extension]) as app:
        handle = await check.enqueue("", "http://127.0.0.1:1/")
        assert (await app.get(handle.id)).type == "links.check"
        await app.declare()
        assert [view.name for view in await app.schedules.list()] == ["links.sweep"]


def test_an_extension_is_named_by_its_place_in_the_settings(tmp_path: Path, url: str) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        f'[penstock]\nurl = "{url}"\nextensions = ["examples.links:extension"]\n'
        "[penstock.links]\nstale_after = 5\ntimeout = 3\n"
    )
    environ = {"PENSTOCK_LINKS__TIMEOUT": "7"}
    app = Penstock(settings=load_settings(file, environ))
    found = app.extensions.settings("links")
    assert (found.stale_after, found.timeout) == (5, 7)


@pytest.mark.usefixtures("shelf_is_installed")
def test_an_installed_extension_is_there_by_its_namespace(url: str) -> None:
    app = Penstock(url)
    assert list(app.extensions) == []
    found: Any = app.shelf  # type: ignore[attr-defined]
    assert isinstance(found, Shelf)
    assert found.app is app
    assert list(app.extensions) == [SHELF]
    assert app.shelf is found  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'shelve'"):
        _ = app.shelve  # type: ignore[attr-defined]


@pytest.mark.usefixtures("shelf_is_installed")
def test_an_installed_extension_is_enabled_by_its_name(url: str) -> None:
    assert list(Penstock(url, extensions=["shelf"]).extensions) == [SHELF]
    with pytest.raises(InvalidOption, match=r"an installed extension \(shelf\)"):
        Penstock(url, extensions=["shelve"])


def test_what_cannot_be_loaded_is_refused_in_a_sentence(url: str) -> None:
    for wrong in ("nowhere:extension", "examples.links:nothing", "examples.links:check"):
        with pytest.raises(InvalidOption, match="'extensions'"):
            Penstock(url, extensions=[wrong])


@pytest.mark.parametrize("name", ["Links", "1st", "with-dash", "", "x" * 32])
def test_a_name_is_a_word(name: str) -> None:
    with pytest.raises(InvalidOption, match="'name'"):
        Extension(name=name)


def test_a_name_is_taken_once(url: str) -> None:
    with pytest.raises(InvalidOption, match="nothing else has"):
        Penstock(url, extensions=[extension, replace(extension)])
    for taken in ("enqueue", "settings", "now"):
        with pytest.raises(InvalidOption, match="nothing else has"):
            Penstock(url, extensions=[Extension(name=taken)])
    assert len(list(Penstock(url, extensions=[SHELF, SHELF]).extensions)) == 1


def test_a_table_bears_the_name_of_its_extension() -> None:
    tables = Tables(extension="shelf", package="x", tables=(Table("books", key=("id",)),))
    with pytest.raises(InvalidOption, match="begins with shelf_"):
        Extension(name="shelf", tables=tables)


def test_settings_that_do_not_fit_are_refused_without_their_values(url: str) -> None:
    settings = Settings(url=url, extension={"links": {"timeout": "hunter2"}})
    with pytest.raises(InvalidOption) as caught:
        Penstock(settings=settings, extensions=[extension])
    assert "timeout" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_settings_of_nobody_are_refused_where_everything_starts(url: str) -> None:
    app = Penstock(settings=Settings(url=url, extension={"lynx": {}}))
    with pytest.raises(InvalidOption, match="'lynx'"):
        app.extensions.enable_installed()


def test_a_part_that_lacks_a_package_names_its_extra(url: str) -> None:
    lacking = Extension(name="shelf", needs="books", namespace="nowhere.at_all:Shelf")
    app = Penstock(url, extensions=[lacking])
    with pytest.raises(MissingExtra, match=r"penstock\[books\]"):
        _ = app.shelf  # type: ignore[attr-defined]


async def test_a_rule_of_redaction_holds_for_errors_and_logs(
    url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redact, "_added", [])
    secret = Extension(name="ward", redact=lambda text: text.replace("Rosebud", "[REDACTED_WARD]"))
    async with Penstock(url, extensions=[secret], clock=clock) as app:

        @app.job
        async def fall() -> None: ...

        handle = await fall.enqueue()
        await app.cancel(handle.id, "because of Rosebud")
        assert (await app.get(handle.id)).error == "because of [REDACTED_WARD]"


def test_settings_are_a_struct_of_the_extension(url: str) -> None:
    class Chosen(Struct):
        colour: str = "blue"

    made = Extension(name="shelf", settings=Chosen)
    app = Penstock(url, extensions=[made])
    assert app.extensions.settings("shelf").colour == "blue"
    with pytest.raises(InvalidOption, match="one that has settings"):
        app.extensions.settings("links")


async def test_a_namespace_that_holds_something_open_is_closed_with_the_application(
    url: str,
) -> None:
    closed: list[str] = []

    class Holding(Shelf):
        async def close(self) -> None:
            closed.append("shelf")

    app = Penstock(url, extensions=[Extension(name="shelf", namespace=Holding)])
    async with app, app:
        assert app.shelf.app is app
        await app.close()
        assert closed == []
        await app.open()
    assert closed == ["shelf"]
