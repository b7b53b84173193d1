"""A server below a path, as a proxy has it."""

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.lifespan.on import LifespanOn

from penstock import Penstock
from penstock.model.errors import InvalidOption
from penstock.server.access.identity import Scope
from penstock.server.access.users import Users
from penstock.server.app import create_server
from penstock.server.prefix import below
from penstock.server.serve import Bind

HOST = "http://localhost"


@pytest.mark.parametrize("passed_on", ["/ops/penstock", ""], ids=["kept", "taken off"])
async def test_it_answers_below_the_path_whether_or_not_the_proxy_takes_it_off(
    server: FastAPI, app: Penstock, passed_on: str
) -> None:
    await Users(app.store).create("ada", "a long password", (Scope.READ,), by="test")
    transport = httpx.ASGITransport(below(server, "/ops/penstock/"))
    async with httpx.AsyncClient(transport=transport, base_url=HOST) as http:
        assert (await http.get("/healthz")).status_code == 200
        asked = await http.get(f"{passed_on}/jobs?status=failed")
        assert asked.headers["location"] == "/ops/penstock/login?next=jobs%3Fstatus%3Dfailed"
        login = await http.get(f"{passed_on}/login")
        assert 'action="/ops/penstock/login"' in login.text
        assert 'src="/static' not in login.text
        assert "Path=/ops/penstock/login;" in login.headers["set-cookie"]
        refused = await http.get(f"{passed_on}/api/jobs/none")
        assert refused.headers["content-type"] == "application/problem+json"


async def test_the_path_itself_is_the_first_page(server: FastAPI, app: Penstock) -> None:
    transport = httpx.ASGITransport(below(server, "/ops"))
    async with httpx.AsyncClient(transport=transport, base_url=HOST) as http:
        first, same, other = [await http.get(path) for path in ("/ops", "/ops/", "/opsy")]
    assert first.status_code == same.status_code
    assert first.headers.get("location") == same.headers.get("location")
    assert other.status_code == 404


def test_without_a_path_nothing_changes(server: FastAPI) -> None:
    assert below(server, "") is server
    assert below(server, "/") is server


@pytest.mark.parametrize("path", ["ops", "//ops", "/o ps", "/ops?a", "/jobs", "/api", "/static"])
def test_a_path_that_would_be_mistaken_for_something_else_is_refused(
    server: FastAPI, path: str
) -> None:
    with pytest.raises(InvalidOption, match="root_path"):
        below(server, path)


def test_the_address_that_is_printed_has_the_path() -> None:
    bind = Bind(host="127.0.0.1", port=0, root_path="/ops/")
    assert bind.address(80) == "http://127.0.0.1:80/ops"


async def test_another_application_opens_what_it_mounts() -> None:
    """As uvicorn does it, which also passes a state on that the context has to leave alone."""
    server = create_server(Penstock("sqlite:///:memory:"))
    site = FastAPI(lifespan=server.router.lifespan_context)
    site.mount("/ops/penstock", server)
    life = LifespanOn(uvicorn.Config(site))
    await life.startup()
    assert not life.should_exit
    async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url=HOST) as http:
        assert (await http.get("/ops/penstock/readyz")).json()["status"] == "ready"
    await life.shutdown()
