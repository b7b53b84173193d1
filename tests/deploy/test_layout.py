"""The processes of the compose file, without containers, on servers from wheels."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import app as program
from proof.servers import PostgresServer, RedisServer
from proof.servers.ports import free_port
from tests.cli.running import until
from tests.support.places import LONG

from .conftest import DEPLOY, ROOT

SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "penstock"}
# In the short form two workers of four: the others differ in what they are told to serve.
LATER = () if LONG else ("worker-urgent", "worker-media")
STAYING = [name for name in OURS if name not in ("migrate", *LATER)]
JOBS = [
    *({"type": "shop.order", "payload": {"number": n}} for n in range(30)),
    *({"type": "shop.mail", "payload": {"to": f"c{n}@example.com"}} for n in range(30)),
    *({"type": "shop.picture", "payload": {"path": f"{n}.jpg"}} for n in range(6 * LONG)),
]
ELSEWHERE = ("server", "worker", "backup", "restore")
"""Commands of the runbook that go on until they are stopped, or are about other stores."""
RUNS_ON = {
    "shop.order": {"general", "urgent"},
    "shop.mail": {"mail"},
    "shop.picture": {"media"},
}


class Layout:
    """The services' environments, as the compose file sets them, with servers of this machine."""

    def __init__(self, postgres: PostgresServer, valkey: RedisServer, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self._places = {
            "@postgres/penstock": f"@127.0.0.1:{postgres.port}/penstock",
            "@valkey:6379/": f"@127.0.0.1:{valkey.port}/",
            "0.0.0.0": "127.0.0.1",
            "8787": str(self.port),
        }

    def url(self, service: str) -> str:
        """Where a service finds the store, and as whom."""
        return self.environment(service)["PENSTOCK_URL"]

    def environment(self, service: str) -> dict[str, str]:
        """What the compose file sets, with the secrets and places of this machine."""
        ours = {name: self._here(value) for name, value in OURS[service]["environment"].items()}
        paths = os.pathsep.join(map(str, (ROOT / "src", ROOT, DEPLOY / "example")))
        return {**os.environ, **ours, "PYTHONPATH": paths}

    def _here(self, value: str) -> str:
        found = filled(value)
        for theirs, ours in self._places.items():
            found = found.replace(theirs, ours)
        return found

    def command(self, service: str) -> list[str]:
        """What the compose file starts; each worker has a /tmp of its own."""
        return [self._in_tmp(service, word) for word in OURS[service]["command"]]

    def check(self, service: str) -> int:
        """The exit code of a worker's health check."""
        kind, program, *words = OURS[service]["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "penstock")
        done = self._penstock(service, *(self._in_tmp(service, word) for word in words))
        return done.returncode

    def _in_tmp(self, service: str, word: str) -> str:
        return word.replace("/tmp", str(self.folder / service))

    def run(self, service: str, *words: str) -> str:
        """Run a command as a service would, to its end."""
        done = self._penstock(service, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _penstock(self, service: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock.cli", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.folder,
            env=self.environment(service),
        )

    @contextmanager
    def started(self, *services: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
        """The services' own commands, each in a process."""
        running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in services:
                with (self.folder / f"{name}.log").open("wb") as log:
                    running[name] = subprocess.Popen(
                        [sys.executable, "-m", "penstock.cli", *self.command(name)],
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


def filled(text: str) -> str:
    """A text of the compose file with the secrets of `.env` filled in: each is its own name."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda blank: blank[1].lower(), text)


@pytest.fixture(scope="module")
def valkey() -> Iterator[RedisServer]:
    """A Valkey with the options of the compose file."""
    program, *words = (filled(word) for word in SERVICES["valkey"]["command"])
    assert program == "valkey-server"
    names, values = words[::2], words[1::2]
    options = dict(zip([name.removeprefix("--") for name in names], values, strict=True))
    with RedisServer(options=options) as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL with the roles of the compose file."""
    with PostgresServer() as server:
        url = server.create_database("penstock")
        (roles,) = (
            DEPLOY / file.partition(":")[0]
            for file in SERVICES["postgres"]["volumes"]
            if "docker-entrypoint-initdb.d" in file
        )
        set_ = {n: filled(v) for n, v in SERVICES["postgres"]["environment"].items()}
        for _ in range(2):  # a second time, as to change a password
            subprocess.run(
                [server.programs / "psql", "--no-psqlrc", "--quiet", "--file", roles, url],
                env=os.environ | set_,
                check=True,
                timeout=60,
            )
        yield server


@pytest.fixture(scope="module")
def _migrated(
    postgres: PostgresServer, valkey: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    layout = Layout(postgres, valkey, tmp_path_factory.mktemp("migrate"))
    layout.run("migrate", *OURS["migrate"]["command"])


@pytest.fixture
def layout(
    postgres: PostgresServer, valkey: RedisServer, _migrated: None, tmp_path: Path
) -> Layout:
    return Layout(postgres, valkey, tmp_path)


@pytest.mark.parametrize("service", ["server", "worker-general"])
def test_a_service_is_nobody_who_passes_row_level_security_or_changes_a_table(
    layout: Layout, service: str
) -> None:
    with psycopg.connect(layout.url(service), autocommit=True) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles "
            "WHERE rolname = current_user"
        ).fetchone()
        assert rights == (False, False, False, False)
        owned = "SELECT tablename FROM pg_tables WHERE schemaname = 'penstock'"
        tables = [name for (name,) in connection.execute(owned)]
        assert len(tables) > 10
        for table in tables:
            applies = f"SELECT row_security_active('penstock.{table}')"
            assert connection.execute(applies).fetchone() == (True,), table
        for statement in (
            "CREATE TABLE penstock.mine (n int)",
            "CREATE TABLE public.mine (n int)",
            "ALTER TABLE penstock.jobs ADD mine int",
            "ALTER TABLE penstock.jobs DISABLE ROW LEVEL SECURITY",
            "DROP TABLE penstock.jobs",
            "TRUNCATE penstock.audit_log",
            "SET ROLE penstock_owner",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_the_server_sees_whose_transactions_stay_open(layout: Layout) -> None:
    """What `penstock doctor` needs to name the session that holds the others up."""
    with (
        psycopg.connect(layout.url("migrate")) as owner,
        psycopg.connect(layout.url("server")) as server,
    ):
        owner.execute("SELECT pg_current_xact_id()")
        seen = server.execute(
            "SELECT state, backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = %s",
            [owner.info.backend_pid],
        ).fetchone()
    assert seen == ("idle in transaction", True)


def test_the_runbook_is_walked_without_the_rights_of_an_owner(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(layout.folder)
    monkeypatch.syspath_prepend(str(DEPLOY / "example"))
    for name, value in layout.environment("server").items():
        monkeypatch.setenv(name, value)
    text = (DEPLOY / "runbook.md").read_text("utf-8")
    commands = re.findall(r"^\$ penstock (.+)$", text, re.MULTILINE)
    walked = [shlex.split(line, comments=True) for line in commands]
    answers = {
        " ".join(words): CliRunner().invoke(program, words, input="a long password\n" * 2)
        for words in walked
        if words[0] not in ELSEWHERE and "--url" not in words
    }
    sys.modules.pop("shop", None)
    assert len(answers) > 20
    refused = {words: each.output for words, each in answers.items() if each.exit_code in (2, 70)}
    assert refused == {}


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
        workers = [name for name in STAYING if name != "server"]
        assert {name: layout.check(name) for name in workers} == dict.fromkeys(workers, 0)
        _read_as_prometheus(address, layout)
        for job_id in ids:
            job = http.get(f"/api/jobs/{job_id}").json()
            (execution,) = job["executions"]
            assert names[execution["worker"]] in RUNS_ON[job["type"]]
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        assert {name: each.wait(60) for name, each in running.items()} == dict.fromkeys(STAYING, 0)
    assert "Traceback" not in layout.logs()


def _read_as_prometheus(address: str, layout: Layout) -> None:
    """Read the metrics as deploy/prometheus says, with the token it says how to make."""
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8")
    (made,) = re.findall(r"^#   penstock (tokens create .+)$", text, re.MULTILINE)
    token = layout.run("server", *made.split())
    (scrape,) = yaml.safe_load(text)["scrape_configs"]
    told = {"Authorization": f"{scrape['authorization']['type']} {token}"}
    metrics = httpx.get(f"{address}{scrape['metrics_path']}", headers=told, timeout=30)
    assert metrics.status_code == 200
    assert 'penstock_jobs_total{status="completed",type="shop.order"} 30' in metrics.text
    assert httpx.get(f"{address}{scrape['metrics_path']}", timeout=30).status_code == 401


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
