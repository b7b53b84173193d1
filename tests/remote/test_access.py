import asyncio
import logging
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import JobNotFound, Penstock, connect
from penstock.model.errors import ForeignTenant, InvalidOption, ParentNotFound, ServerRefused
from penstock.model.store_errors import AccessDenied, StoreUnavailable
from tests.remote.conftest import MakeToken

SECRET = "pk_01ARZ3NDEKTSV4RRFFQ69G5FAV_do-not-show-this"


async def test_a_wrong_token_is_refused_at_once(address: str, make_token: MakeToken) -> None:
    await make_token("admin")
    async with connect(address, token=SECRET) as remote:
        with pytest.raises(AccessDenied, match="no such token") as refused:
            await remote.find()
    assert SECRET not in str(refused.value)


async def test_a_token_without_the_scope_is_told_which_it_needs(
    address: str, make_token: MakeToken
) -> None:
    async with connect(address, token=await make_token("enqueue")) as remote:
        job = await remote.enqueue_payload("add", '{"a": 1}')
        with pytest.raises(AccessDenied, match="scope 'operate'"):
            await remote.cancel(job.id)


async def test_a_token_of_a_tenant_sees_and_makes_only_what_is_its_own(
    address: str, behind: Penstock, make_token: MakeToken
) -> None:
    token = await make_token("enqueue", "operate", tenant="acme")
    foreign = await behind.enqueue_payload("add", '{"a": 1}', tenant="other")
    async with connect(address, token=token) as remote:
        own = await remote.enqueue_payload("add", '{"a": 2}')
        assert (await behind.get(own.id)).tenant_id == "acme"
        assert [job.id for job in await remote.find()] == [own.id]
        with pytest.raises(JobNotFound):
            await remote.get(foreign.id)
        with pytest.raises(JobNotFound):
            await remote.cancel(foreign.id)
        with pytest.raises(ParentNotFound):
            await remote.enqueue_payload("add", '{"a": 3}', after=foreign)
        with pytest.raises(ForeignTenant, match="'other' is not yours"):
            await remote.enqueue_payload("add", '{"a": 3}', tenant="other")
        with pytest.raises(AccessDenied, match="whole installation"):
            await remote.controls.pause(queue="default")


async def test_an_id_that_is_another_tenants_job_is_taken(
    address: str, behind: Penstock, make_token: MakeToken, types: Penstock
) -> None:
    foreign = await behind.enqueue_payload("add", '{"a": 1}', tenant="other")
    call = types.types["add"].new(2)
    call.job = type(call.job)(id=foreign.id, type="add", payload='{"a":2}')
    async with connect(address, token=await make_token("enqueue", tenant="acme")) as remote:
        with pytest.raises(ServerRefused, match="taken") as refused:
            await remote.enqueue(call)
    assert refused.value.status == 409


async def test_an_id_of_another_time_is_refused(address: str, types: Penstock) -> None:
    call = types.types["add"].new(2)
    call.job = type(call.job)(id="7ZZZZZZZZZ0000000000000000", type="add", payload='{"a":2}')
    async with connect(address, app=types) as remote:
        with pytest.raises(ServerRefused, match="another day"):
            await remote.enqueue(call)


async def test_a_token_is_in_no_log_and_in_no_repr(
    address: str, make_token: MakeToken, caplog: pytest.LogCaptureFixture
) -> None:
    token = await make_token("admin")
    with caplog.at_level(logging.DEBUG):
        async with connect(address, token=token) as remote:
            await remote.find()
            shown = repr(remote) + repr(vars(remote)) + repr(vars(remote._wire))
            with pytest.raises(JobNotFound) as missing:
                await remote.get("nothing")
    secret = token.split("_", 2)[2]
    assert secret not in shown
    assert secret not in caplog.text
    assert secret not in repr(missing.value) + str(vars(missing.value))


@pytest.mark.parametrize(
    ("url", "token", "problem"),
    [
        ("sqlite:///work.db", None, "the address of a server"),
        ("https://", None, "the address of a server"),
        (7, None, "the address of a server"),
        ("https://ann:pw@example.com", None, "without an account"),
        ("http://example.com", SECRET, "https"),
        ("https://example.com", "pk_1\r\nX: y", "such as pk_"),
    ],
)
def test_what_cannot_be_reached_safely_is_refused_without_showing_secrets(
    url: str, token: str | None, problem: str
) -> None:
    with pytest.raises(InvalidOption, match=problem) as refused:
        connect(url, token=token)
    assert "pw" not in str(refused.value)
    assert "do-not-show" not in str(refused.value)


def test_a_safe_network_or_this_machine_may_do_without_tls() -> None:
    for url in ("http://localhost:8787", "http://127.0.0.1:8787", "http://[::1]:8787/jobs"):
        assert repr(connect(url, token=SECRET)) == f"<penstock at {url}>"
    assert connect("http://example.com", token=SECRET, plain_http=True)


def test_authorities_come_from_a_file_of_certificates(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="PEM"):
        connect("https://example.com", ca=str(tmp_path / "none.pem"))


def test_httpx_is_loaded_when_a_connection_is_made_and_not_before() -> None:
    code = (
        "import sys; from penstock import Penstock, connect; assert 'httpx' not in sys.modules;"
        "sys.modules['httpx'] = None\n"
        "try:\n    connect('http://localhost')\nexcept Exception as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'penstock[remote]'" in done.stdout


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that only itself vouches for; its key is in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "public.pem")),
        ],
        capture_output=True,
        check=True,
    )
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "public.pem").read_text())
    return both


async def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    served = await asyncio.start_server(_answer, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{served.sockets[0].getsockname()[1]}"
    async with served:
        async with connect(url, token=SECRET, patience=60) as remote:
            with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                await remote.find()
        async with connect(url, token=SECRET, ca=str(certificate)) as remote:
            assert await remote.find() == []


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"jobs":[],"next":null}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()
