from penstock import Penstock
from penstock.server.dashboard import links
from penstock.server.dashboard.links import Flash
from tests.server.dashboard.conftest import Browser


def test_a_flash_is_read_with_its_own_key_only() -> None:
    value = links.written(Flash("done"), "key")
    assert links.read(value, "key") == Flash("done")
    assert links.read(value, "other") is None
    assert links.read("x" + value, "key") is None
    assert links.read("nonsense", "key") is None


async def test_a_flash_is_shown_once(browser: Browser, app: Penstock) -> None:
    job = await app.enqueue_payload("mail.send", '{"to": "a"}')
    answer = await browser.send(f"jobs/{job.id}/pause")
    assert "The job is paused." in await browser.follow(answer)
    assert "The job is paused." not in await browser.text(f"jobs/{job.id}")
