"""From a URL to a connection."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreUnavailable
from penstock.store.open import open_store
from penstock.store.redis.connect import address_of
from penstock.store.redis.server import Server
from proof.servers import RedisServer
from tests.support.namespaces import in_new_namespace

CERTIFICATE = Path(__file__).with_name("localhost.pem")


def test_a_url_names_host_port_database_account_and_namespace() -> None:
    address = address_of("redis://ann:p%40ss@db.example:7000/3?namespace=mail&timeout=2.5")
    assert (address.host, address.port, address.db) == ("db.example", 7000, 3)
    assert (address.username, address.password) == ("ann", "p@ss")
    assert (address.namespace, address.prefix) == ("mail", "{mail}:")
    assert (address.timeout, address.tls, address.path) == (2.5, None, None)


def test_a_short_url_has_the_usual_values() -> None:
    address = address_of("redis://localhost")
    assert (address.host, address.port, address.db) == ("localhost", 6379, 0)
    assert (address.username, address.password, address.prefix) == (None, None, "{penstock}:")


@pytest.mark.parametrize("scheme", ["unix", "redis+unix"])
def test_a_url_may_name_a_socket(scheme: str) -> None:
    address = address_of(f"{scheme}://:secret@/run/my%20valkey.sock?db=2&namespace=a")
    assert (address.path, address.db) == ("/run/my valkey.sock", 2)
    assert (address.password, address.namespace) == ("secret", "a")


def test_certificates_are_for_rediss_alone() -> None:
    assert address_of("rediss://h?ssl_cert_reqs=none").tls == {"ssl_cert_reqs": "none"}
    assert address_of("rediss://h").tls == {}
    with pytest.raises(InvalidOption, match="rediss://"):
        address_of("redis://h?ssl_cert_reqs=none")


@pytest.mark.parametrize(
    "url",
    [
        "redis://h:port/0",
        "redis://h/mail",
        "redis://h/0?nmespace=a",
        "redis://h/0?namespace={a}",
        "redis://h/0?namespace=",
        "redis://h/0?timeout=0",
        "redis://h/0?timeout=soon",
        "unix://run/valkey.sock",
        "unix://",
        "http://h/0",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_showing_a_password(url: str) -> None:
    told = url.replace("://", "://:canary@", 1)
    with pytest.raises(InvalidOption) as refused:
        address_of(told)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("kind", ["valkey", "redis6"])
async def test_a_unix_socket_works_like_a_port(kind: Any) -> None:
    with RedisServer(kind=kind) as server:
        for url in (server.socket_url, server.url):
            store = open_store(url)
            await store.open()
            assert (await store.metrics.depths()) == []
            await store.close()


async def test_another_database_is_another_installation(valkey_server_url: str) -> None:
    url = in_new_namespace(valkey_server_url)
    first, second = Server(url), Server(url.replace("/0", "/1"))
    await first.open()
    await second.open()
    await first.ask("SET", first.prefix + "x", 1)
    assert await second.ask("EXISTS", second.prefix + "x") == 0
    await first.close()
    await second.close()


@asynccontextmanager
async def tls_front(port: int) -> AsyncGenerator[int, None]:
    """A port that speaks TLS, in front of one that does not."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    lines: list[asyncio.StreamWriter] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(writer)
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    front = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield front.sockets[0].getsockname()[1]
    front.close()
    for line in lines:
        line.close()
    await asyncio.gather(*(line.wait_closed() for line in lines), return_exceptions=True)


async def test_rediss_speaks_tls_and_believes_no_stranger() -> None:
    with RedisServer() as server:
        async with tls_front(server.port) as port:
            url = f"rediss://localhost:{port}/0"
            store = open_store(f"{url}?ssl_ca_certs={CERTIFICATE}")
            await store.open()
            assert await store.metrics.dead_count() == 0
            await store.close()
            with pytest.raises(StoreUnavailable, match="certificate"):
                await open_store(url).open()
