import pytest

from penstock import Penstock
from penstock.model.errors import InvalidOption
from penstock.server.dashboard.request import Form
from penstock.server.problems import Refusal
from tests.server.dashboard.conftest import Browser


@pytest.mark.parametrize(
    "change",
    [
        {"csrf": ""},
        {"csrf": "somebody-elses"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
async def test_a_form_of_another_site_changes_nothing(
    change: dict[str, str], browser: Browser, app: Penstock
) -> None:
    job = await app.enqueue_payload("mail.send", '{"to": "a"}')
    forms: dict[str, dict[str, str]] = {
        f"jobs/{job.id}/cancel": {},
        "jobs/bulk": {"action": "cancel", "id": job.id, "sure": "yes"},
        "jobs/new": {"type": "mail.send", "payload": '{"to": "b"}'},
    }
    for path, fields in forms.items():
        assert (await browser.send(path, fields, **change)).status_code == 403
    assert [found.status for found in await app.find()] == ["queued"]


async def test_a_form_that_is_too_large_or_no_form_is_refused(browser: Browser) -> None:
    large = await browser.send("jobs/new", {"type": "mail.send", "payload": "x" * 70_000})
    assert large.status_code == 413
    other = await browser.send("jobs/new", Content_Type="application/json")
    assert other.status_code == 415
    many = await browser.send("jobs/bulk", [("id", "a")] * 2_500)
    assert many.status_code == 400


def test_a_field_is_read_as_what_it_holds() -> None:
    form = Form((("a", " 12 "), ("b", "1.5"), ("c", '{ "x": 1 }'), ("d", " word "), ("e", " ")))
    assert (form.whole("a"), form.number("b"), form.json("c")) == (12, 1.5, '{"x":1}')
    assert (form.words("d", 4), form.raw("d")) == ("word", " word ")
    assert (form.whole("e"), form.number("e"), form.words("e", 1)) == (None, None, None)
    assert form.json("e", "{}") == "{}"


@pytest.mark.parametrize("text", ["-1", "1.0", "1e3", "٣", "9" * 5_000, "nan"])
def test_a_whole_number_is_no_other(text: str) -> None:
    with pytest.raises(InvalidOption, match="a whole number from 0 to"):
        Form((("n", text),)).whole("n")


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "1e999", "soon"])
def test_a_number_is_one_that_can_be_reckoned_with(text: str) -> None:
    with pytest.raises(InvalidOption, match="a number"):
        Form((("n", text),)).number("n")


def test_words_are_bounded() -> None:
    with pytest.raises(InvalidOption, match="at most 3"):
        Form((("n", "four"),)).words("n", 3)


@pytest.mark.parametrize("text", ["", "{", "[" * 20_000, "NaN"])
def test_what_is_no_document_is_refused_at_its_field(text: str) -> None:
    with pytest.raises(Refusal, match="not JSON") as refused:
        Form((("payload", text),)).json("payload")
    assert (refused.value.status, refused.value.field) == (422, "payload")
