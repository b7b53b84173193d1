"""The recorder talks to those that the settings name, and to nobody else."""

import pytest

from penstock.apps.recorder import outbound
from penstock.apps.recorder.extension import ModelSettings, PublishSettings, RecorderSettings
from penstock.apps.recorder.outbound import Away, NotAllowed, allowed, client, post
from proof.servers.kubo import kubo_node

PUBLISH = PublishSettings(
    enabled=True,
    kubo="http://127.0.0.1:5001",
    rpc="https://chain.example/v1",
    chain_id=1,
    contract="0x0",
    key="env:K",
)
EVERYBODY = RecorderSettings(model=ModelSettings(provider="anthropic"), publish=PUBLISH)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:5001/api/v0/add?pin=true",
        "https://chain.example/other",
        "https://CHAIN.example:443/",
        "https://api.anthropic.com/v1/messages",
    ],
)
def test_what_the_settings_name_is_allowed(url: str) -> None:
    assert allowed(EVERYBODY, url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:5002/",
        "http://chain.example/v1",
        "https://chain.example:8443/",
        "https://chain.example.evil.com/",
        "https://user@evil.com/chain.example",
        "http://169.254.169.254/",
        "ftp://127.0.0.1:5001/",
        "file:///etc/passwd",
        "https://[::1",
        "",
    ],
)
def test_whatever_else_is_refused(url: str) -> None:
    with pytest.raises(NotAllowed, match="may not talk to"):
        allowed(EVERYBODY, url)


def test_what_is_switched_off_is_refused() -> None:
    for url in ("https://api.anthropic.com/", "http://127.0.0.1:5001/", "http://127.0.0.1:8545/"):
        with pytest.raises(NotAllowed):
            allowed(RecorderSettings(), url)


async def test_a_client_sends_nothing_to_others() -> None:
    with kubo_node() as named, kubo_node() as other:
        told = PublishSettings(
            enabled=True, kubo=named.url, chain_id=1, contract="0x0", key="env:K"
        )
        async with client(RecorderSettings(publish=told), timeout=5) as http:
            await http.post(f"{named.url}/api/v0/version")
            with pytest.raises(NotAllowed):
                await http.post(f"{other.url}/api/v0/version")
        assert (named.asked, other.asked) == (["version"], [])


async def test_who_does_not_answer_is_not_asked_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbound, "_breakers", {})
    with kubo_node() as node:
        told = PublishSettings(enabled=True, kubo=node.url, chain_id=1, contract="0x", key="env:K")
        node.refuses = 503
        async with client(RecorderSettings(publish=told), timeout=5) as http:
            for _ in range(8):
                with pytest.raises(Away):
                    await post(http, "It", f"{node.url}/api/v0/version", now=0)
            assert len(node.asked) == 5
            node.refuses = 0
            reply = await post(http, "It", f"{node.url}/api/v0/version", now=60_000)
            assert reply.status == 200


async def test_a_path_which_may_be_a_key_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with kubo_node() as node:
        told = PublishSettings(enabled=True, kubo=node.url, chain_id=1, contract="0x", key="env:K")
        async with client(RecorderSettings(publish=told), timeout=5) as http:
            await http.post(f"{node.url}/v3/the-walrus-sings")
    assert node.url.removeprefix("http://") in caplog.text
    assert "HTTP Request" in caplog.text
    assert "walrus" not in caplog.text


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with kubo_node() as node:
        told = PublishSettings(enabled=True, kubo=node.url, chain_id=1, contract="0x", key="env:K")
        async with client(RecorderSettings(publish=told), timeout=5) as http:
            assert (await http.post(f"{node.url}/api/v0/version")).status_code == 200
