"""One request: it goes to the address that was looked at, and takes no more than is its due."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from penstock.apps.agents.webhooks import sending
from penstock.apps.agents.webhooks.addresses import Refused, networks, parse_url
from penstock.apps.agents.webhooks.sending import LONGEST_BODY, Answer, Unanswered, post
from tests.apps.agents.webhooks.receiver import (
    Receiver,
    answering,
    hanging,
    hanging_up,
    receiving,
    writing,
)
from tests.apps.agents.webhooks.test_addresses import Names

HERE = networks(("127.0.0.1/32",))


async def send(url: str, timeout: float = 5.0, **more: Any) -> Answer:
    headers = [("X-Own", "1")]
    return await post(parse_url(url), headers, b"{}", **{"allow": HERE, "timeout": timeout, **more})


async def test_an_answer_is_its_status_and_the_beginning_of_its_body(receiver: Receiver) -> None:
    receiver.behaviours = [answering(200, "taken", Retry_After="7")]
    assert await send(receiver.url) == Answer(status=200, body="taken", retry_after="7")
    assert receiver.got[0].headers["Host"] == f"127.0.0.1:{receiver.port}"


async def test_an_answer_in_chunks_and_after_a_hint_is_read(receiver: Receiver) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    receiver.behaviours = [writing(hint, head, b"2\r\nta\r\n", b"3\r\nken\r\n0\r\n\r\n")]
    assert await send(receiver.url) == Answer(status=200, body="taken")


async def test_who_says_nothing_in_time_has_not_answered(receiver: Receiver) -> None:
    receiver.behaviours = [hanging]
    with pytest.raises(Unanswered, match="nothing within"):
        await send(receiver.url, timeout=0.05)


async def test_who_trickles_its_headers_does_not_get_more_time(receiver: Receiver) -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: 1\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    receiver.behaviours = [trickle]
    with pytest.raises(Unanswered, match="nothing within"):
        await send(receiver.url, timeout=0.1)


async def test_a_status_counts_even_if_the_body_never_ends(receiver: Receiver) -> None:
    head = b"HTTP/1.1 202 OK\r\nContent-Length: 100\r\n\r\nbeg"
    receiver.behaviours = [writing(head, then_hang=True)]
    assert await send(receiver.url, timeout=1) == Answer(status=202, body="beg")


async def test_no_more_is_read_than_is_kept(receiver: Receiver) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    receiver.behaviours = [writing(head, b"x" * LONGEST_BODY, then_hang=True)]
    async with asyncio.timeout(5):
        assert await send(receiver.url, timeout=60) == Answer(status=200, body="x" * 1_000)


@pytest.mark.parametrize(
    "said",
    [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200", b"HTTP/1.1 999999 Odd\r\n\r\n"],
)
async def test_what_is_no_answer_is_none(receiver: Receiver, said: bytes) -> None:
    receiver.behaviours = [writing(said)]
    with pytest.raises(Unanswered):
        await send(receiver.url)


async def test_headers_without_end_are_no_answer(receiver: Receiver) -> None:
    receiver.behaviours = [writing(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n" * 5_000)]
    with pytest.raises(Unanswered):
        await send(receiver.url)


async def test_who_hangs_up_or_is_not_there_has_not_answered(receiver: Receiver) -> None:
    receiver.behaviours = [hanging_up]
    with pytest.raises(Unanswered, match=r"gave no answer"):
        await send(receiver.url)
    async with receiving() as other:
        gone = other.url
    with pytest.raises(Unanswered, match=r"Connect call failed|refused"):
        await send(gone)


async def test_a_redirect_is_an_answer_and_nothing_else(receiver: Receiver) -> None:
    async with receiving() as other:
        receiver.behaviours = [answering(307, Location=other.url)]
        assert (await send(receiver.url)).status == 307
        assert other.got == []


async def test_proxies_of_the_environment_are_not_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await send(receiver.url)).status == 204
        assert proxy.got == []


async def test_a_name_that_comes_to_mean_another_address_is_not_asked_for_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    assert (await send(f"http://rebound.example:{receiver.port}/")).status == 204
    assert receiver.got[0].headers["Host"] == f"rebound.example:{receiver.port}"
    assert names.asked == ["rebound.example"]


async def test_a_name_that_means_a_private_address_is_never_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[Any] = []
    monkeypatch.setattr(asyncio, "open_connection", connected.append)
    for answers in (["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:127.0.0.1"]):
        Names(monkeypatch, answers)
        with pytest.raises(Refused):
            await send(f"https://inside.example:{receiver.port}/", allow=())
    assert connected == []


async def test_where_an_address_does_not_answer_the_next_one_is_tried(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch, ["127.0.0.9", "127.0.0.1"])
    here = networks(("127.0.0.0/8",))
    assert (await send(f"http://both.example:{receiver.port}/", allow=here)).status == 204


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A certificate of `hooks.example` that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hooks.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("hooks.example"), x509.IPAddress(ip_address("127.0.0.1"))]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("authority")
    path = folder / "hooks.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    yield path
    sending._trust.cache_clear()


@pytest.fixture
async def secure(authority: Path) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority)
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0, ssl=context)
    receiver.port = server.sockets[0].getsockname()[1]
    yield receiver
    server.close()


async def test_a_receiver_is_known_by_the_name_in_its_url(
    secure: Receiver, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch, ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"])
    known = {"certificates": str(authority)}
    assert (await send(f"https://hooks.example:{secure.port}/", **known)).status == 204
    with pytest.raises(Unanswered, match=r"(?i)hostname mismatch|not valid"):
        await send(f"https://other.example:{secure.port}/", **known)
    with pytest.raises(Unanswered, match=r"(?i)self.signed|verify failed"):
        await send(f"https://hooks.example:{secure.port}/")
    assert len(secure.got) == 1
