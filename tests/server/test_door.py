"""Where a server may listen."""

import httpx
import pytest

from penstock import Penstock
from penstock.model.errors import InvalidOption
from penstock.server.access.identity import Scope
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Users
from penstock.server.serve import Bind, Serving, bind_socket, listen


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("", False),
    ],
)
def test_only_loopback_is_private(host: str, private: bool) -> None:
    assert Bind(host=host, port=0).is_private is private


async def test_other_addresses_are_refused_until_there_is_a_token_or_a_user(app: Penstock) -> None:
    public = Bind(host="0.0.0.0", port=0)
    async with app:
        with pytest.raises(InvalidOption, match="penstock users add"):
            await bind_socket(app, public)
        await Tokens(app.store).create("ci", (Scope.READ,), by="test")
        with await bind_socket(app, public) as listening:
            assert listening.getsockname()[0] == "0.0.0.0"


async def test_a_user_opens_the_door_too(app: Penstock) -> None:
    async with app:
        await Users(app.store).create("ada", "a long password", (Scope.READ,), by="test")
        with await bind_socket(app, Bind(host="0.0.0.0", port=0)) as listening:
            assert listening.getsockname()[0] == "0.0.0.0"


async def test_loopback_needs_nobody(app: Penstock) -> None:
    with await bind_socket(app, Bind(host="127.0.0.1", port=0)) as taken:
        assert taken.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("bind", "address"),
    [
        (Bind(host="127.0.0.1", port=0), "http://127.0.0.1:80"),
        (Bind(host="::1", port=0), "http://[::1]:80"),
        (Bind(host="localhost", port=0, certificate="c.pem"), "https://localhost:80"),
    ],
)
def test_the_address_is_what_a_browser_wants(bind: Bind, address: str) -> None:
    assert bind.address(80) == address


@pytest.mark.parametrize("proxies", ["", "10.0.0.7,10.0.0.8"])
async def test_forwarding_headers_are_believed_of_named_proxies_only(
    app: Penstock, proxies: str
) -> None:
    bind = Bind(host="127.0.0.1", port=0, proxies=proxies)
    with listen(bind) as taken:
        config = Serving(app, bind, taken).config()
    assert config.proxy_headers is bool(proxies)
    assert config.forwarded_allow_ips == proxies


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
async def test_whoever_comes_through_a_proxy_is_not_taken_for_somebody_on_this_machine(
    http: httpx.AsyncClient, header: str
) -> None:
    assert (await http.get("/api/jobs")).status_code == 200
    assert (await http.get("/api/jobs", headers={header: "203.0.113.9"})).status_code == 403
