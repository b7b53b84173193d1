"""Guessing is slow, and costs the server little."""

import asyncio

import pytest
from fastapi import FastAPI

from penstock.server.access import identity, users
from penstock.server.access.identity import Rates, Scope
from penstock.server.access.users import MOST_WAIT_SECONDS, Logins, Users, neighbourhood
from penstock.server.problems import Refusal

PASSWORD = "correct horse battery"
WRONG = "not the password"


@pytest.fixture
async def doors(server: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Logins:
    """The log-ins of a server with one user; passwords are compared at once."""

    async def check(users: Users, name: str, password: str) -> object:
        return await users.get(name) if password == PASSWORD else None

    await server.state.server.users.create("ann", PASSWORD, (Scope.READ,), by="test")
    monkeypatch.setattr(Users, "check", check)
    monkeypatch.setattr(identity, "monotonic", lambda: 0.0)
    found: Logins = server.state.server.logins
    return found


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each try was made to wait; nobody waits in fact."""
    seen: list[float] = []

    async def sleep(seconds: float) -> None:
        seen.append(seconds)

    monkeypatch.setattr(users, "sleep", sleep)
    return seen


async def refused(doors: Logins, name: str, address: str) -> bool:
    try:
        return await doors.enter(name, WRONG, address) is not None
    except Refusal as refusal:
        return refusal.status == 429


async def test_whoever_guesses_a_name_keeps_themselves_out_and_not_its_owner(
    doors: Logins, waits: list[float]
) -> None:
    tries = [await refused(doors, "ann", "203.0.113.66") for _ in range(40)]
    assert tries[0] is False
    assert tries[-1] is True
    user = await doors.enter("ann", PASSWORD, "198.51.100.7")
    assert user is not None
    assert user.name == "ann"


async def test_many_addresses_that_guess_one_name_slow_its_log_ins_and_end_none(
    doors: Logins, waits: list[float]
) -> None:
    for number in range(200):
        assert not await refused(doors, "ann", f"203.0.{number}.66")
    assert max(waits) > 0
    assert max(waits) <= MOST_WAIT_SECONDS
    assert await doors.enter("ann", PASSWORD, "198.51.100.7") is not None
    waits.clear()
    assert await doors.enter("bob", WRONG, "198.51.100.7") is None
    assert waits == []


async def test_an_address_that_tries_many_names_is_refused(
    doors: Logins, waits: list[float]
) -> None:
    tries = [await refused(doors, f"user{number}", "203.0.113.66") for number in range(60)]
    assert (tries[0], tries[-1]) == (False, True)


async def test_no_more_than_a_few_passwords_are_compared_at_once(
    doors: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = most = 0
    goes_on = asyncio.Event()

    async def check(*_: object) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await goes_on.wait()
        running -= 1

    monkeypatch.setattr(Users, "check", check)
    tries = [asyncio.create_task(doors.enter(f"user{n}", WRONG, f"203.0.{n}.1")) for n in range(20)]
    for _ in range(50):
        await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(*tries)
    assert most == users.AT_ONCE


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
    monkeypatch.setattr(identity, "BUCKETS", 100)
    counted = Rates(60)
    for number in range(1_000):
        counted.wait_for(f"caller {number}")
    assert len(counted) <= 100
