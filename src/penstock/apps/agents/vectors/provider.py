"""Which vector store an application has, by its settings."""

from typing import TYPE_CHECKING, Any

from penstock.extension import load
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import AgentsSettings
    from penstock.apps.agents.vectors.store import VectorStore


def make_store(app: "Penstock") -> "VectorStore":
    """Make the vector store that `[penstock.agents.vectors]` names.

    A provider of one's own is called with the application and `settings` as keywords.
    """
    settings: AgentsSettings = app.extensions.settings("agents")
    named, provider = settings.vectors, settings.vectors.provider
    on_postgres = app.table_store("agents").dialect == "postgres"
    if provider == "pgvector" and not on_postgres:
        expected = "usearch: pgvector is for tables on PostgreSQL"
        raise InvalidOption("vectors.provider", provider, expected)
    if provider == "pgvector" or (provider == "" and on_postgres):
        from penstock.apps.agents.vectors.pgvector_store import PgvectorStore

        return PgvectorStore(app, named)
    if provider in ("", "usearch"):
        from penstock.apps.agents.vectors.usearch_store import UsearchStore

        return UsearchStore(app, named)
    if ":" not in provider:
        expected = "usearch, pgvector, or a module:name"
        raise InvalidOption("vectors.provider", provider, expected)
    make: Any = load(provider)
    made: VectorStore = make(app, **named.settings)
    return made
