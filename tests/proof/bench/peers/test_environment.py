import subprocess
from pathlib import Path

import pytest

from penstock import __version__
from proof.bench.page import find_checkout
from proof.bench.peers import environment
from proof.bench.peers.environment import Environments, PeerMissing
from proof.bench.peers.system import NODE, OURS, PEERS, System

CHECKOUT = find_checkout() or Path()


@pytest.mark.parametrize("system", [*PEERS, OURS[0]], ids=lambda system: system.name)
def test_every_system_has_code_and_a_locked_version(system: System) -> None:
    environments = Environments(CHECKOUT)
    if system.name != NODE:
        assert Path(environments.command(system)[1]).is_file()
    assert environments.version(system)[0].isdigit()


def test_penstock_is_the_one_that_runs_here() -> None:
    environments = Environments(CHECKOUT)

    environments.install(OURS[0])

    assert environments.version(OURS[0]) == __version__


def test_an_environment_is_made_once_for_each_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[str]] = []

    def pretend(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        runs.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environment.subprocess, "run", pretend)
    lock = tmp_path / "requirements" / "bench" / "huey.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("huey==1\n", "utf-8")
    environments = Environments(tmp_path)

    environments.install(PEERS[0])
    environments.install(PEERS[0])
    assert len(runs) == 1

    lock.write_text("huey==2\n", "utf-8")
    environments.install(PEERS[0])
    assert len(runs) == 2


def test_a_peer_that_cannot_be_installed_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "ERROR: No matching distribution found for huey\nhint\n"
    monkeypatch.setattr(
        environment.subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 1, "", said),
    )
    lock = tmp_path / "requirements" / "bench" / "huey.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("huey==1\n", "utf-8")
    environments = Environments(tmp_path)

    with pytest.raises(PeerMissing, match="No matching distribution found for huey"):
        environments.install(PEERS[0])


def test_a_machine_without_node_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(PeerMissing, match="node is not on this machine"):
        Environments(CHECKOUT).command(PEERS[-1])
