"""The processes of the compose file, without containers, on servers from wheels."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from penstock.testing.servers import RedisServer
from penstock.testing.servers.ports import free_port
from tests.cli.running import until

from .conftest import DEPLOY, ROOT

SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "penstock"}
STAYING = [name for name in OURS if name != "migrate"]
JOBS = (
    [{"type": "shop.order", "payload": {"number": n}} for n in range(30)]
    + [{"type": "shop.mail", "payload": {"to": f"c{n}@example.com"}} for n in range(30)]
    + [{"type": "shop.picture", "payload": {"path": f"{n}.jpg"}} for n in range(6)]
)
RUNS_ON = {
    "shop.order": {"general", "urgent"},
    "shop.mail": {"mail"},
    "shop.picture": {"media"},
}


class Layout:
    """The environment of the services, with the two servers and one port of this machine."""

    def __init__(self, url: str, dispatch: str, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self._ours = {
            "PENSTOCK_URL": url,
            "PENSTOCK_DISPATCH": dispatch,
            "PENSTOCK_HOST": "127.0.0.1",
            "PENSTOCK_PORT": str(self.port),
        }

    def environment(self, service: str) -> dict[str, str]:
        """What the compose file sets, with the values of this machine."""
        names = set(OURS[service].get("environment", {}))
        assert names <= self._ours.keys()
        paths = os.pathsep.join(map(str, (ROOT / "src", ROOT, DEPLOY / "example")))
        return {**os.environ, **{n: self._ours[n] for n in names}, "PYTHONPATH": paths}

    def run(self, service: str, *words: str) -> str:
        """Run a command as a service would, to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "penstock.cli", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.folder,
            env=self.environment(service),
            check=True,
        )
        return done.stdout.strip()

    @contextmanager
    def started(self, *services: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
        """The services' own commands, each in a process."""
        running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in services:
                with (self.folder / f"{name}.log").open("wb") as log:
                    running[name] = subprocess.Popen(
                        [sys.executable, "-m", "penstock.cli", *OURS[name]["command"]],
                        stdout=log,
                        stderr=log,
                        cwd=self.folder,
                        env=self.environment(name),
                    )
            yield running
        finally:
            for process in running.values():
                if process.poll() is None:
                    process.kill()
                process.wait()

    def logs(self) -> str:
        """What all of them said."""
        return "\n".join(file.read_text("utf-8") for file in self.folder.glob("*.log"))


@pytest.fixture(scope="module")
def valkey_as_composed() -> Iterator[str]:
    """A Valkey with the options of the compose file."""
    program, *words = SERVICES["valkey"]["command"]
    assert program == "valkey-server"
    options = {name.removeprefix("--"): value for name, value in batched(words)}
    with RedisServer(options=options) as server:
        yield server.url


def batched(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.fixture
def layout(postgres_url: str, valkey_as_composed: str, tmp_path: Path) -> Layout:
    made = Layout(postgres_url, valkey_as_composed, tmp_path)
    made.run("migrate", *OURS["migrate"]["command"])
    return made


@pytest.mark.timeout(240)
def test_jobs_run_through_every_service_and_everything_drains(layout: Layout) -> None:
    token = layout.run("server", "tokens", "create", "t", "--scopes", "enqueue,read")
    told = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{layout.port}"
    with (
        layout.started(*STAYING) as running,
        httpx.Client(base_url=address, headers=told, timeout=30) as http,
    ):
        until(lambda: _answers(http))
        assert http.get("/api/jobs", headers={"Authorization": ""}).status_code == 401
        made = http.post("/api/jobs", json=JOBS)
        assert made.status_code == 201, made.text
        ids = {each["id"] for each in made.json()}
        until(lambda: _completed(http) >= ids, seconds=120)
        names = _names_of_workers(http)
        for job_id in ids:
            job = http.get(f"/api/jobs/{job_id}").json()
            (execution,) = job["executions"]
            assert names[execution["worker"]] in RUNS_ON[job["type"]]
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        assert {name: each.wait(60) for name, each in running.items()} == dict.fromkeys(STAYING, 0)
    assert "Traceback" not in layout.logs()


def _answers(http: httpx.Client) -> bool:
    try:
        return http.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def _completed(http: httpx.Client) -> set[str]:
    found = http.get("/api/jobs", params={"status": "completed", "limit": 200}).json()["jobs"]
    return {job["id"] for job in found}


def _names_of_workers(http: httpx.Client) -> dict[str, str]:
    """`general-1` is one of two processes of the worker `general`."""
    found = http.get("/api/workers").json()["workers"]
    return {each["owner"]: each["name"].split("-")[0] for each in found}
