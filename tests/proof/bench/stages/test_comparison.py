import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from proof.bench.page import find_checkout
from proof.bench.peers.environment import Environments, PeerMissing
from proof.bench.peers.stores import Stores
from proof.bench.peers.system import OURS, PEERS, SQLITE, System
from proof.bench.readings import Readings
from proof.bench.scale import Scale
from proof.bench.stages import comparison
from proof.bench.stages.comparison import SINGLES, Comparison
from proof.bench.stages.stage import Bench

HUEY, PENSTOCK = PEERS[0], OURS[0]


class Files:
    """The stores of a comparison, with nothing but files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0

    @contextmanager
    def empty(self, store: str) -> Generator[str, None, None]:
        assert store == SQLITE
        self._made += 1
        yield f"sqlite:///{self._directory / f'{self._made}.db'}"


class NoPeers(Environments):
    """Every peer is missing."""

    def install(self, system: System) -> None:
        if system.name != PENSTOCK.name:
            raise PeerMissing("the network is down")


def test_a_comparison_measures_what_it_can_and_keeps_why_it_cannot_the_rest(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(comparison, "LIMITS", {SQLITE: "raw"})
    monkeypatch.setattr(comparison, "SETTLING_SECONDS", 0)
    checkout = find_checkout()
    assert checkout
    scale = msgspec.structs.replace(
        Scale.quick(200), peer_divisor=200, peer_pickups=2, peer_singles=5
    )
    readings = Readings()
    found = Comparison(
        Bench(scale, tmp_path, readings), NoPeers(checkout), cast(Stores, Files(tmp_path))
    )

    for stage in found.stages([PENSTOCK, HUEY]):
        for step in stage.steps:
            step()

    assert found.failures == {HUEY.key: "the network is down"}
    for name in ("bulk/s", *SINGLES, "drain/s", "drain by two/s", "pickup ms"):
        assert readings.median(f"{PENSTOCK.key} {name}") > 0
        assert not readings.has(f"{HUEY.key} {name}")
    assert readings.has("raw limit (SQLite) drain/s")


def test_the_best_of_the_settings_that_were_tried_is_measured(tmp_path: Path) -> None:
    checkout = Path(sys.prefix)
    found = Comparison(
        Bench(Scale.quick(200), tmp_path, Readings()),
        Environments(checkout),
        cast(Stores, Files(tmp_path)),
    )
    assert found.setting(HUEY) == HUEY.settings[0]

    found._trials[HUEY.key] = {1: 10.0, 4: 20.0}

    assert found.setting(HUEY) == 4
