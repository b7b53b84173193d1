"""Who may do what, tried on every operation that the API's own document names."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from penstock.server.access.identity import Scope, including
from penstock.server.api.openapi import all_routes, api_routes
from penstock.server.app import create_server
from penstock.server.guard import guard_of
from tests.server.api.operations import Operation, operations
from tests.server.conftest import Bearer, TokenMaker

OPEN_TO_ALL = {"/healthz", "/readyz"}


async def answers(
    http: AsyncClient, server: FastAPI, headers: Bearer, which: list[Operation] | None = None
) -> dict[str, int]:
    """The status that every operation answers with."""
    found = {}
    for operation in operations(server) if which is None else which:
        if not operation.scopes:
            continue
        request = operation.request(http)
        request.headers.update(headers)
        found[operation.id] = (await http.send(request)).status_code
    return found


def test_every_route_has_a_guard(server: FastAPI) -> None:
    routes = [r for r in all_routes(server.routes) if r.path.startswith("/api/")]
    assert len(routes) >= 40
    assert [r.path for r in routes if guard_of(r.dependant) is None] == []
    documented = {r.path_format for r in api_routes(server) if guard_of(r.dependant) is None}
    assert documented <= OPEN_TO_ALL


def test_a_route_without_a_guard_is_noticed(server: FastAPI) -> None:
    @server.get("/api/forgotten")
    def forgotten() -> None: ...

    added = next(r for r in api_routes(server) if r.path_format == "/api/forgotten")
    assert guard_of(added.dependant) is None


async def test_nothing_is_answered_without_a_token_once_there_is_one(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    await make_token("admin")
    assert set((await answers(http, server, {})).values()) == {401}


async def test_a_server_that_trusts_nobody_is_closed_from_the_start(app) -> None:
    import httpx

    server = create_server(app)
    async with server.router.lifespan_context(server):
        transport = httpx.ASGITransport(server)
        async with AsyncClient(transport=transport, base_url="http://localhost") as http:
            assert set((await answers(http, server, {})).values()) == {401}


async def test_a_wrong_token_opens_nothing(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    right = (await make_token("admin"))["Authorization"]
    for wrong in (right[:-1] + ("A" if right[-1] != "A" else "B"), "Bearer pk_x_y", "Bearer pk_"):
        assert set((await answers(http, server, {"Authorization": wrong})).values()) == {401}


async def test_an_expired_token_opens_nothing(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    expired = await make_token("admin", expires_in_ms=0)
    assert set((await answers(http, server, expired)).values()) == {401}


async def test_a_revoked_token_opens_nothing(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    header = await make_token("admin")
    assert (await http.get("/api/jobs", headers=header)).status_code == 200
    await server.state.server.tokens.revoke(header["Authorization"].split("_")[1])
    assert set((await answers(http, server, header)).values()) == {401}


@pytest.mark.every_store
@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_a_token_opens_what_its_scopes_include_and_nothing_else(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    for scope in Scope:
        header = await make_token(scope.value)
        allowed = {each.value for each in including((scope,))}
        found = await answers(http, server, header)
        for operation in operations(server):
            if not operation.scopes:
                continue
            refused = found[operation.id] in (401, 403)
            assert refused is not (allowed >= set(operation.scopes)), (scope, operation.id)


async def test_a_token_of_a_tenant_is_refused_what_concerns_the_whole(
    http: AsyncClient, server: FastAPI, make_token: TokenMaker
) -> None:
    header = await make_token("admin", tenant="acme")
    found = await answers(http, server, header)
    for operation in operations(server):
        if operation.scopes:
            assert (found[operation.id] == 403) is operation.whole, operation.id
