"""What was done to a chain is seen, whatever it was."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from penstock.model.audit import Entry, first_break, sealed

Tampering = Callable[[list[Entry]], list[Entry]]


def chain(length: int = 5) -> list[Entry]:
    made: list[Entry] = []
    for number in range(length):
        last = made[-1] if made else None
        tenant = ("acme", "other")[number % 2]
        made.append(
            sealed(
                last, at=number, actor="a", action="b", subject=f"job:{number}", tenant_id=tenant
            )
        )
    return made


def slipped_in(entries: list[Entry]) -> list[Entry]:
    extra = sealed(entries[1], at=1, actor="a", action="b", subject="job:9")
    return [*entries[:2], extra, *entries[2:]]


def swapped_tenants(entries: list[Entry]) -> list[Entry]:
    one, two = entries[1], entries[2]
    changed = [replace(one, tenant_id=two.tenant_id), replace(two, tenant_id=one.tenant_id)]
    return [entries[0], *changed, *entries[3:]]


def renumbered(entries: list[Entry]) -> list[Entry]:
    return [replace(entry, seq=number) for number, entry in enumerate(entries[1:], 1)]


def resealed_alone(entries: list[Entry]) -> list[Entry]:
    forged = sealed(entries[1], at=2, actor="somebody", action="b", subject="job:2")
    return [*entries[:2], forged, *entries[3:]]


TAMPERINGS: list[Tampering] = [
    lambda entries: entries[1:],
    lambda entries: [*entries[:2], *entries[3:]],
    lambda entries: [entries[0], entries[2], entries[1], *entries[3:]],
    lambda entries: [*entries[:2], entries[2], entries[2], *entries[3:]],
    lambda entries: [replace(entries[0], at=7), *entries[1:]],
    lambda entries: [*entries[:-1], replace(entries[-1], details='{"x":1}')],
    slipped_in,
    swapped_tenants,
    renumbered,
    resealed_alone,
]


def test_an_untouched_chain_holds() -> None:
    assert first_break(chain()) is None


@pytest.mark.parametrize("change", TAMPERINGS)
def test_a_chain_that_was_tampered_with_breaks(change: Tampering) -> None:
    assert first_break(change(chain())) is not None
