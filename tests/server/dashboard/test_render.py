import re

import pytest
from msgspec import ValidationError

from penstock.server.dashboard.render import FOLDER, chart, code, count, percent, size


def test_no_template_has_a_style_or_a_script_of_its_own() -> None:
    for path in FOLDER.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:|hx-on", text), path
        assert not re.search(r"<script(?![^>]* src=)", text), path
        assert "| safe" not in text, path


def test_numbers_are_written_as_people_do() -> None:
    assert [count(n) for n in (None, 12458, 0.25, 3.0, 1234.5)] == [
        "–",
        "12,458",
        "0.2",
        "3",
        "1,234",
    ]
    assert [percent(n) for n in (None, 1.0, 0.99999, 0.5)] == ["–", "100 %", "99.9 %", "50 %"]
    assert [size(n) for n in (0, 1_023.4, 1_024, 74_850)] == [
        "0 MB",
        "1,023 MB",
        "1.0 GB",
        "73.1 GB",
    ]
    assert code("ask `a <b>` & go") == "ask <code>a &lt;b&gt;</code> &amp; go"


def test_an_extension_hands_in_a_chart_as_plain_data() -> None:
    line = {"label": "kept", "colour": "good", "values": [10.0, None, 30.0]}
    drawn = chart({"times": [0, 60_000, 120_000], "lines": [line], "unit": " %"})
    assert drawn.marks()["top"] == "30 %"
    assert "M0.0 108.0M600.0 4.0" in drawn.drawing(), "what is not known is a gap"
    with pytest.raises(ValidationError):
        chart({"times": ["today"], "lines": []})
