import pytest

from tests.support.promql import Parser, Selector, Syntax


def test_an_expression_tells_what_it_reads() -> None:
    parser = Parser('sum by (queue) (rate(a_total{x="1",y=~"2|3"}[5m])) / max(b) > 0.5')
    assert parser.parse() == "vector"
    assert parser.selectors == {
        Selector("a_total", frozenset({"x", "y"})),
        Selector("b", frozenset()),
    }
    assert parser.grouped == {"queue"}


@pytest.mark.parametrize(
    "text",
    [
        "sum(rate(a[5m])",
        "rate(a)",
        "a[5m] > 1",
        "sum(a[5m])",
        "histogram_quantile(a, 0.5)",
        "a{x=1}",
        'a{x="1"',
        "a and 1",
        "a b",
        "a >",
        "a[5 minutes]",
        "sum by queue (a)",
    ],
)
def test_what_prometheus_would_refuse_is_refused(text: str) -> None:
    with pytest.raises(Syntax):
        Parser(text).parse()
