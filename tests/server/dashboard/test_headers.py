import pytest

from tests.server.dashboard.conftest import Browser

PAGES = ("", "jobs", "jobs/new", "jobs/new?type=mail.send")


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_forbids_everything_that_is_not_its_own(path: str, browser: Browser) -> None:
    answer = await browser.open(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
