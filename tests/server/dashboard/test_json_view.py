from datetime import UTC, datetime

from penstock.server.dashboard.render import DEEPEST, LONGEST, UNFOLDED, json_view


def test_a_document_is_laid_out_with_its_kinds() -> None:
    shown = json_view('{"to": "<b>", "n": 1.5, "ok": true, "no": null, "e": {}}')
    assert '<span class="key">&#34;to&#34;</span>: <span class="text">&#34;&lt;b&gt;&#34;' in shown
    assert '<span class="number">1.5</span>' in shown
    assert shown.count('<span class="word">') == 2
    assert "{}" in shown


def test_a_long_part_is_folded_and_a_short_one_is_not() -> None:
    assert f"[ {UNFOLDED + 1} items" in json_view({"rows": list(range(UNFOLDED + 1))})
    assert "<details>" not in json_view({"rows": list(range(UNFOLDED))})
    assert "<details>" not in json_view(list(range(UNFOLDED + 1)))


def test_what_is_no_json_is_shown_as_it_is() -> None:
    assert "&lt;half" in json_view('{"a": <half')
    assert "2026" in json_view({"at": datetime(2026, 1, 1, tzinfo=UTC)})


def test_a_document_of_any_depth_is_shown() -> None:
    assert json_view("[" * 3 * DEEPEST + "]" * 3 * DEEPEST).count("\n") == 2 * (DEEPEST + 1)
    assert json_view("[" * 200_000 + "]" * 200_000).startswith("[[")


def test_a_large_document_is_shown_in_part_and_costs_the_server_little() -> None:
    shown = json_view(f'{{"rows": {[1] * 300_000}, "x": "<b>"}}')
    assert len(shown) < 2 * LONGEST
    assert "more characters" in shown
    assert "&lt;" in json_view('["' + "<" * LONGEST + '"]')
