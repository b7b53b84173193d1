"""Guessing is slow, and costs the server little."""

import pytest

from penstock.server.access import rates
from penstock.server.access.logins import neighbourhood
from penstock.server.access.rates import Rates


@pytest.mark.parametrize(
    ("address", "whose"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_attacker_with_a_network_of_addresses_is_one_attacker(address: str, whose: str) -> None:
    assert neighbourhood(address) == whose


def test_a_flood_of_new_callers_takes_a_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "BUCKETS", 100)
    counted = Rates(60)
    for number in range(1_000):
        counted.wait_for(f"caller {number}")
    assert len(counted) <= 100
