"""Labels are bounded, and no series ever moves."""

from penstock.server.prometheus.scrape import OTHER, Names


def test_names_beyond_the_bound_share_one_series() -> None:
    names = Names(2)
    names.learn(["a", "b", "c"])
    assert [names.label(name) for name in ("a", "b", "c")] == ["a", "b", OTHER]


def test_a_name_keeps_its_series_whatever_comes_later() -> None:
    names = Names(2)
    names.learn(["b"])
    names.learn(["a", "b"])
    names.learn(["0"])
    assert names.known == ["b", "a"]
