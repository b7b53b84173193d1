"""What the routes of a server share, when the store below it changes."""

import httpx

from penstock import Penstock
from penstock.server.access.identity import Scope
from penstock.server.access.tokens import Tokens
from penstock.server.app import create_server
from penstock.testing import in_memory


async def test_a_server_that_is_there_already_follows_its_application_into_memory() -> None:
    app = Penstock("sqlite:///:memory:")
    server = create_server(app)
    for _ in range(2):
        with in_memory(app):
            async with (
                server.router.lifespan_context(server),
                httpx.AsyncClient(
                    transport=httpx.ASGITransport(server), base_url="http://localhost"
                ) as http,
            ):
                _, token = await Tokens(app.store).create("ci", (Scope.READ,), by="test")
                bearer = {"Authorization": f"Bearer {token}"}
                assert (await http.get("/api/jobs", headers=bearer)).status_code == 200
                assert (await http.get("/api/jobs")).status_code == 401
                await server.state.server.observer.uptime.run_once()
