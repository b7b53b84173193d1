"""Where a webhook may go, and every form of an address to which it may not."""

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from penstock.apps.agents.webhooks.addresses import (
    Refused,
    check_url,
    is_refused,
    networks,
    parse_url,
    resolve,
)
from penstock.model.errors import InvalidOption

PRIVATE_4 = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "169.254.170.2"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1"),
    *("192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
)
PUBLIC_4 = ("1.1.1.1", "8.8.8.8", "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.32.0.1")
PRIVATE_6 = (
    *("::", "::1", "::2", "100::1", "64:ff9b:1::1", "64:ff9b:1:0:8:8:8:8"),
    *("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1"),
    *("2001:20::1", "2001:db8::1", "2002::1", "2002:808:808::1", "3fff::1", "5f00::1"),
    *("fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "feff::1"),
    *("ff02::1", "ff0e::1"),
)
PUBLIC_6 = ("2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888")


@pytest.mark.parametrize("address", PRIVATE_4 + PRIVATE_6)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert is_refused(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC_4 + PUBLIC_6)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert not is_refused(ip_address(address))


def wrapped(address: str) -> list[str]:
    """All the ways in which an IPv6 address carries an IPv4 address."""
    high, low = divmod(int(ip_address(address)), 1 << 16)
    tail = f"{high:x}:{low:x}"
    teredo = int(ip_address("2001::")) | (int(ip_address(address)) ^ 0xFFFF_FFFF)
    return [
        f"::ffff:{tail}",
        f"::ffff:0:{tail}",
        f"::{tail}",
        f"64:ff9b::{tail}",
        f"2002:{tail}::1",
        str(ip_address(teredo)),
        f"2a00:1450:4001:81b:0:5efe:{tail}",
        f"2a00:1450:4001:81b:200:5efe:{tail}",
    ]


@pytest.mark.parametrize("address", PRIVATE_4)
def test_a_private_address_inside_an_ipv6_address_is_refused(address: str) -> None:
    assert [one for one in wrapped(address) if not is_refused(ip_address(one))] == []


def test_a_public_address_behind_nat64_is_reached() -> None:
    assert not is_refused(ip_address("64:ff9b::8.8.8.8"))


def test_a_network_of_ones_own_is_reached_in_every_form() -> None:
    own = networks(("10.1.0.0/16",))
    assert not is_refused(ip_address("10.1.2.3"), own)
    assert not is_refused(ip_address("::ffff:10.1.2.3"), own)
    assert not is_refused(ip_address("64:ff9b::10.1.2.3"), own)
    assert is_refused(ip_address("10.2.0.1"), own)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.com/", "https://", "https:///path", "example.com", "//example.com/"),
        *("https://user@example.com/", "https://user:word@example.com/", "https://a b.com/"),
        *("https://example.com/#part", "https://example.com\\@10.0.0.1/", "https://ex%61mple.com/"),
        *("https://example.com:0/", "https://example.com:70000/", "https://example.com:x/"),
        *(
            "https://①②⑦.⓪.⓪.①/",
            "https://bücher.example/",
            "https://[::1",
            "https://exa\nmple.com/",
        ),
        *("https://example.com/\r\nX: y", "https://-.-/", f"https://example.com/{'a' * 2000}"),
    ],
)
def test_what_is_no_plain_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidOption, match="'url' must be"):
        parse_url(url)


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://example.com", "https://example.com", "/"),
        ("https://EXAMPLE.com:443/A?b=%20", "https://example.com", "/A?b=%20"),
        ("http://[2606:4700::1]:8080/x", "http://[2606:4700::1]:8080", "/x"),
    ],
)
def test_an_address_is_read(url: str, origin: str, path: str) -> None:
    target = parse_url(url)
    assert (target.origin, target.path) == (origin, path)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "017700000001", "127.1", "127.0.1"),
        *("0x7f.1", "0177.0.0.1", "localhost", "0", "[::1]", "[::ffff:7f00:1]"),
        *("[64:ff9b::7f00:1]", "[fe80::1]", "10.0.0.7", "169.254.169.254"),
    ],
)
async def test_every_way_to_write_a_private_address_is_refused(host: str) -> None:
    with pytest.raises(Refused, match="not a public one"):
        await resolve(parse_url(f"https://{host}/"), ())


class Names:
    """A name server whose answers are these, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.asked: list[str] = []
        self._answers = [*answers]
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, 1, 6, "", (each, port))
            for each in self._answers.pop(0)
        ]


async def test_one_private_address_among_public_ones_refuses_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for private in ("192.168.1.1", "::1", "64:ff9b::a00:1"):
        Names(monkeypatch, ["8.8.8.8", "2606:4700::1111", private])
        with pytest.raises(Refused, match=private):
            await resolve(parse_url("https://example.com/"), ())


async def test_a_name_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch, ["8.8.8.8", "8.8.4.4"], ["127.0.0.1"])
    found = await resolve(parse_url("https://example.com/"), ())
    assert [str(each) for each in found] == ["8.8.8.8", "8.8.4.4"]
    assert names.asked == ["example.com"]


async def test_nothing_goes_over_the_internet_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    Names(monkeypatch, ["8.8.8.8"])
    with pytest.raises(Refused, match="unencrypted"):
        await resolve(parse_url("http://example.com/"), networks(("10.0.0.0/8",)))
    Names(monkeypatch, ["10.0.0.1"])
    [address] = await resolve(parse_url("http://example.com/"), networks(("10.0.0.0/8",)))
    assert str(address) == "10.0.0.1"


def test_what_can_be_refused_is_refused_when_a_webhook_is_added() -> None:
    with pytest.raises(Refused):
        check_url("https://10.0.0.1/", ())
    with pytest.raises(Refused, match="unencrypted"):
        check_url("http://example.com/", ())
    check_url("https://10.0.0.1/", networks(("10.0.0.0/8",)))


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"'allow' is '10\.0\.0\.1/8'"):
        networks(("10.0.0.1/8",))
