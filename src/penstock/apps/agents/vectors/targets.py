"""Targets: rows that learn the id of their vector, in tables that only the settings name."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import AgentsSettings


class Target(Struct, frozen=True, kw_only=True):
    """Where the id of a vector is written, for rows of one tenant."""

    table: str
    id: str
    column: str
    within: dict[str, str]
    """The tenant's column and its value; empty for a table without one."""

    def write(self, tx: Any, source_id: str, embedding_id: str) -> bool:
        """Tell a row the id of its vector; False if there is no such row."""
        where = {self.id: source_id, **self.within}
        return bool(tx.set_column(self.table, self.column, embedding_id, where))


def find_target(app: "Penstock", name: str, tenant: str) -> Target:
    """Return the target of a name, as `[penstock.agents.targets.NAME]` describes it.

    A table of an extension is narrowed to the tenant by what its declaration says.
    """
    settings: AgentsSettings = app.extensions.settings("agents")
    told = settings.targets.get(name)
    if told is None:
        known = ", ".join(sorted(settings.targets)) or "none"
        expected = f"one that [penstock.agents.targets] describes ({known})"
        raise InvalidOption("target", name, expected)
    column = told.tenant
    if told.table not in settings.tables_of_mine:
        column = _declared(app, name, told.table) or column
    return Target(
        table=told.table,
        id=told.id,
        column=told.column,
        within={column: tenant} if column else {},
    )


def _declared(app: "Penstock", name: str, table: str) -> str | None:
    """The tenant's column of a table that an extension declares; InvalidOption if none does."""
    for extension in app.extensions.known().values():
        for declared in extension.tables.tables if extension.tables else ():
            if declared.name == table:
                return declared.tenant
    expected = "a table of an installed extension, or one that tables_of_mine lists"
    raise InvalidOption(f"targets.{name}.table", table, expected)
