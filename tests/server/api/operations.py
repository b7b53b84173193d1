"""Every operation of the API, read from its own document, with a request that reaches it."""

from typing import Any

import httpx
from fastapi import FastAPI
from msgspec import Struct

METHODS = ("get", "post", "put", "patch", "delete")
NOBODYS_ID = "01JD3Z6K3V9M0Q2T4W6Y8A0C2E"
BODIES: dict[str, Any] = {
    "enqueue": {"type": "add", "payload": {"a": 1}},
    "add_dependencies": {"after": [NOBODYS_ID]},
    "act_on_jobs": {"action": "cancel", "filter": {"type": "nothing"}},
    "put_schedule": {"type": "add", "payload": {"a": 1}, "cron": "0 3 * * *"},
    "purge_dead_letters": {"type": "nothing"},
    "amend_dead_letter": {"arguments": {"text": "other"}},
    "pause": {"scope": "queue", "name": "nothing"},
    "set_limits": {"scope": "key", "name": "nothing", "concurrency": 1},
    "erase": {"tenant": "nobody"},
    "create_token": {"name": "test", "scopes": ["read"]},
}
QUERIES = {
    "resume": {"scope": "queue", "name": "nothing"},
    "remove_limits": {"scope": "key", "name": "nothing"},
}


class Operation(Struct, frozen=True):
    """One method of one address."""

    id: str
    method: str
    path: str
    scopes: tuple[str, ...]
    whole: bool
    takes_body: bool
    query: frozenset[str]

    def request(self, client: httpx.AsyncClient, **names: str) -> httpx.Request:
        """A request that is right in all but who sends it."""
        path = self.path
        for part in ("job_id", "token_id", "group", "name", "queue"):
            path = path.replace("{" + part + "}", names.get(part, NOBODYS_ID))
        body = BODIES.get(self.id, {}) if self.takes_body else None
        return client.build_request(
            self.method.upper(), path, json=body, params=QUERIES.get(self.id)
        )


def operations(server: FastAPI) -> list[Operation]:
    """All of them."""
    document = server.openapi()
    return [
        Operation(
            id=operation["operationId"],
            method=method,
            path=path,
            scopes=tuple(operation.get("x-scopes", ())),
            whole="belongs to no tenant" in operation["description"],
            takes_body="requestBody" in operation,
            query=frozenset(
                each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"
            ),
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    ]
