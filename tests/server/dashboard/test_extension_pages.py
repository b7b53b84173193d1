"""Pages, tiles and concerns that an extension declares, as people see them."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.extension import Extension, Page
from penstock.server.access.identity import Scope
from penstock.server.app import create_server
from tests.server.dashboard.conftest import Browser
from tests.support import garden
from tests.support.places import Place


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    garden.watered.clear()
    made = Penstock(place.url, dispatch=place.dispatch, extensions=[garden.garden])
    async with made:
        yield made


async def test_a_page_is_shown_inside_our_layout_with_everything_escaped(browser: Browser) -> None:
    answer = await browser.open("garden?status=dry")
    assert answer.status_code == 200
    assert "<li>rose &lt;b&gt; 2 plants</li>" in answer.text
    assert '<span class="quiet">dry</span>' in answer.text
    assert "<title>Beds · Penstock</title>" in answer.text
    assert 'id="pages"' in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_page_that_asks_for_itself_anew_gets_the_content_alone(browser: Browser) -> None:
    answer = await browser.open("garden", headers={"HX-Request": "true"})
    assert "<!doctype" not in answer.text
    assert "rose" in answer.text


async def test_the_navigation_has_our_pages_first_then_a_group_with_counts(
    browser: Browser,
) -> None:
    text = await browser.text("")
    group = re.search(r'<details class="group" id="pages-garden">(.*?)</details>', text, re.DOTALL)
    assert group is not None, "folded, as the page is none of it"
    assert "<summary>Garden</summary>" in group[1]
    assert '<span>Beds</span><span class="count">1,234</span>' in group[1]
    assert text.index("<span>Audit log</span>") < group.start()
    inside = await browser.text("garden/rose")
    assert '<details class="group" id="pages-garden" open>' in inside
    assert re.search(r'href="/garden" aria-current="page"', inside)


async def test_a_form_acts_and_leads_back_with_a_sentence(browser: Browser) -> None:
    answer = await browser.send("garden", {"bed": "rose"})
    assert "rose is dug." in await browser.follow(answer)
    assert garden.watered == ["local dug rose"]


async def test_a_form_without_the_token_of_its_page_is_refused(browser: Browser) -> None:
    answer = await browser.send("garden", {"bed": "rose"}, csrf="guessed")
    assert (answer.status_code, garden.watered) == (403, [])


async def test_what_a_form_asks_for_in_vain_is_said_on_the_page(browser: Browser) -> None:
    answer = await browser.send("garden", {"bed": "moor"})
    assert "There is no bed &#39;moor&#39;." in await browser.follow(answer)


async def test_errors_of_a_page_are_pages(browser: Browser) -> None:
    missing = await browser.open("garden/moor")
    assert missing.status_code == 404
    assert "There is no bed" in missing.text
    broken = await browser.open("garden/tools")
    assert broken.status_code == 500
    assert "no water" not in broken.text


async def test_scopes_and_tenants_decide_what_is_shown(log_in: Any) -> None:
    reader: Browser = await log_in(Scope.READ, name="ana")
    assert "<button>Dig</button>" not in await reader.text("garden")
    assert (await reader.send("garden", {"bed": "rose"})).status_code == 403
    bound: Browser = await log_in(Scope.ADMIN, tenant_id="north", name="bo")
    text = await bound.text("garden")
    assert "<span>Beds</span>" in text
    assert "<span>Tools</span>" not in text
    assert (await bound.open("garden/tools")).status_code == 403
    assert "1,234" not in text, "a count is of the whole"


async def test_tiles_and_concerns_are_on_the_overview(browser: Browser) -> None:
    text = await browser.text("")
    assert '<a class="value" href="/garden">2,500</a>' in text
    weeds = text.partition(">Weeds<")[2]
    assert weeds.index('<span class="value">–</span>') < 120, "a figure that fails is left out"
    assert '<a href="/garden"><strong>Drought</strong></a> It is <code>dry</code>.' in text
    assert "<strong>Garden: soil</strong></a> The soil is dry." in text


async def test_a_tenant_sees_neither(log_in: Any) -> None:
    bound: Browser = await log_in(Scope.READ, tenant_id="north")
    text = await bound.text("")
    assert "Drought" not in text
    assert "Plants" not in text


async def test_pages_of_an_extension_without_a_title_stand_among_ours(place: Place) -> None:
    plain = Extension(
        name="plain", pages=(Page(path="plain", title="Plain", template="x", show=garden.show_bed),)
    )
    app = Penstock(place.url, dispatch=place.dispatch, extensions=[plain])
    from penstock.server.access.identity import LOCAL
    from penstock.server.dashboard.navigation import groups_for

    async with app:
        server = create_server(app).state.server
        ours = (await groups_for(server, LOCAL))[0].pages
    titles = [page.title for page in ours]
    assert titles.index("Workers") < titles.index("Plain") < titles.index("Audit log")
