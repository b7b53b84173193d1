"""Packages with steps and queries, made for one test."""

from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from penstock.store.contract.tables import Table, Tables

MakeTables = Callable[..., Tables]


def make_tables_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTables:
    """A function that declares tables `notes_…` and writes the files that make them."""
    monkeypatch.syspath_prepend(str(folder))

    def make(files: Mapping[str, str], *tables: Table) -> Tables:
        package = f"notes_{uuid4().hex[:12]}"
        sql = folder / package / "sql"
        sql.mkdir(parents=True)
        (folder / package / "__init__.py").touch()
        for name, text in files.items():
            (sql / f"{name}.sql").write_text(text)
        return Tables("notes", package, tables)

    return make
