import re

import pytest

from penstock.server.dashboard import links
from penstock.server.dashboard.links import TYPES, content_of, files
from penstock.server.dashboard.render import FOLDER
from tests.server.dashboard.conftest import Browser


def test_every_file_that_ships_has_a_type() -> None:
    known = {path.suffix for path in files().values()}
    assert known <= TYPES.keys()
    assert "app.css" in files()


async def test_a_file_under_its_hash_is_kept_for_good(browser: Browser) -> None:
    version = content_of("app.css")[1]
    assert (
        "immutable" in (await browser.open(f"static/app.css?v={version}")).headers["cache-control"]
    )
    assert (await browser.open("static/app.css?v=other")).headers["cache-control"] == "no-cache"
    assert (await browser.open("static/../install.py")).status_code == 404
    assert (await browser.open("static/%2e%2e/install.py")).status_code == 404


async def test_a_large_file_is_sent_packed_to_a_browser_that_unpacks_it(browser: Browser) -> None:
    packed = await browser.open("static/app.css", headers={"Accept-Encoding": "br, gzip"})
    plain = await browser.open("static/app.css", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    assert packed.content == plain.content
    assert "content-encoding" not in plain.headers
    assert {packed.headers["vary"], plain.headers["vary"]} == {"Accept-Encoding"}
    assert packed.headers["etag"] != plain.headers["etag"]


async def test_pages_work_without_the_browser_libraries(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "has", lambda name: "vendor" not in name)
    text = await browser.text("")
    assert "vendor" not in text
    assert "app.css" in text


def test_every_class_of_a_template_has_a_rule() -> None:
    rules = re.sub(r"\{[^{}]*\}", "", (links.FOLDER / "app.css").read_text())
    known = set(re.findall(r"\.([a-z][\w-]*)", rules))
    for path in FOLDER.rglob("*.html"):
        for words in re.findall(r'class="([^"{}]*)"', path.read_text()):
            assert set(words.split()) <= known, path
